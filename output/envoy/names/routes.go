package names

import (
	"strconv"
	"strings"
)

// edgeRoutesPrefix begins the names of route configurations of the edge.
const edgeRoutesPrefix = "http."

// EdgeRoutes returns the name of the route configuration of a port of the edge.
func EdgeRoutes(port uint32) string {
	return edgeRoutesPrefix + strconv.FormatUint(uint64(port), 10)
}

// ParseEdgeRoutes parses a name of [EdgeRoutes].
func ParseEdgeRoutes(name string) (number uint32, ok bool) {
	digits, ok := strings.CutPrefix(name, edgeRoutesPrefix)
	if !ok {
		return 0, false
	}
	number, ok = ParsePort(digits)
	return number, ok && number > 0 && number <= HighestPort
}

// EdgeHostRoutes returns the name of the route configuration of a port of the edge with
// VHDS.
func EdgeHostRoutes(port uint32) string { return EdgeRoutes(port) + HostsSuffix }

// EdgeVirtualHost returns the name of a virtual host in [EdgeHostRoutes].
func EdgeVirtualHost(port uint32, host string) string { return EdgeHostRoutes(port) + "/" + host }

// PortRoutes returns the name of the route configuration that the services of a port share.
func PortRoutes(number uint32) string { return strconv.FormatUint(uint64(number), 10) }

// IsOfPort reports whether a name is that of a route configuration of a port.
func IsOfPort(name string) bool {
	digits := strings.TrimSuffix(name, HostsSuffix)
	if host, _, one := ParseListener(name); one {
		digits = name[len(host)+1:]
	}
	number, ok := ParsePort(digits)
	return ok && number <= HighestPort
}

// HostRoutes returns the name of the route configuration of a port with VHDS.
func HostRoutes(number uint32) string { return PortRoutes(number) + HostsSuffix }

// HostsSuffix ends the names of route configurations with VHDS.
const HostsSuffix = ".hosts"

// ParseHostRoutes parses a name of [HostRoutes].
func ParseHostRoutes(name string) (number uint32, ok bool) {
	digits, ok := strings.CutSuffix(name, HostsSuffix)
	if !ok {
		return 0, false
	}
	number, ok = ParsePort(digits)
	return number, ok && number <= HighestPort
}

// VirtualHost returns the name of a virtual host of VHDS. Envoy requires the name of the
// route configuration as its prefix.
func VirtualHost(host string, number uint32) string { return HostRoutes(number) + "/" + host }

// RoutesOf returns the route configuration of a virtual host of VHDS.
func RoutesOf(name string) string {
	routes, _, _ := strings.Cut(name, "/")
	return routes
}

// ParseVirtualHost parses a name of [VirtualHost].
func ParseVirtualHost(name string) (host string, number uint32, ok bool) {
	routes, host, _ := strings.Cut(name, "/")
	number, ok = ParseHostRoutes(routes)
	return host, number, ok && host != ""
}
