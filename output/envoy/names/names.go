package names

import (
	"strconv"
	"strings"
)

// OutboundPrefix begins the names of clusters, their load assignments and gRPC's route
// configurations, "outbound|<port>|<subset>|<host>". The subset is empty for all endpoints.
const OutboundPrefix = "outbound|"

// Cluster returns the name of a service port's cluster, load assignment and gRPC route
// configuration.
func Cluster(host string, port uint32) string {
	return string(appendCluster(make([]byte, 0, clusterSize(host, port)), host, port))
}

// Subset returns the name for a subset of the port's endpoints.
func Subset(host string, port uint32, subset string) string {
	if subset == "" {
		return Cluster(host, port)
	}
	return OutboundPrefix + strconv.FormatUint(uint64(port), 10) + "|" + subset + "|" + host
}

// Chosen is the subset in the name of the cluster of instances that clients choose themselves. No
// subset of the settings has the name.
const Chosen = "*"

// CutSubset splits a name of [Subset] into the name for all endpoints and the subset.
func CutSubset(name string) (whole, subset string) {
	rest, outward := strings.CutPrefix(name, OutboundPrefix)
	port, rest, _ := strings.Cut(rest, "|")
	subset, host, found := strings.Cut(rest, "|")
	if !outward || !found || subset == "" {
		return name, ""
	}
	return OutboundPrefix + port + "||" + host, subset
}

func appendCluster(b []byte, host string, port uint32) []byte {
	b = append(b, OutboundPrefix...)
	b = strconv.AppendUint(b, uint64(port), 10)
	b = append(b, "||"...)
	return append(b, host...)
}

func clusterSize(host string, port uint32) int {
	digits := 1
	for ; port >= 10; port /= 10 {
		digits++
	}
	return len(OutboundPrefix) + digits + len("||") + len(host)
}

// ParseCluster parses a name of [Cluster].
func ParseCluster(name string) (host string, port uint32, ok bool) {
	rest, outward := strings.CutPrefix(name, OutboundPrefix)
	digits, host, found := strings.Cut(rest, "||")
	if !outward || !found || host == "" {
		return "", 0, false
	}
	port, ok = ParsePort(digits)
	return host, port, ok
}

// Listener returns the name under which a gRPC client asks for a service port: the
// authority of its target, "<host>:<port>".
func Listener(host string, port uint32) string {
	return host + ":" + strconv.FormatUint(uint64(port), 10)
}

// ParseListener parses a name of [Listener]. A host may contain colons; the port follows
// the last one.
func ParseListener(name string) (host string, port uint32, ok bool) {
	colon := strings.LastIndexByte(name, ':')
	if colon <= 0 {
		return "", 0, false
	}
	port, ok = ParsePort(name[colon+1:])
	return name[:colon], port, ok
}

// ParsePort parses a port number without leading zeros. If 080 were 80, one resource would
// have several names, and a client would receive a name that it did not ask for.
func ParsePort(digits string) (uint32, bool) {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || digits[0] == '+' || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	return uint32(n), true
}

// Istio's names of clusters without a service.
const (
	// Passthrough is the cluster of connections to their original destination.
	Passthrough = "PassthroughCluster"
	// BlackHole is the cluster without endpoints.
	BlackHole = "BlackHoleCluster"
)

// PassthroughChain is the filter chain of connections to no service, whatever its cluster.
const PassthroughChain = "PassthroughFilterChain"

// InboundPassthrough is the cluster of connections to ports of the workload without a
// service.
const InboundPassthrough = "InboundPassthroughCluster"

// InboundCluster returns the name of the cluster of a port of the workload.
func InboundCluster(port uint32) string {
	return "inbound|" + strconv.FormatUint(uint64(port), 10) + "||"
}

// DNSCluster is the extension of newer Envoys with the settings of name resolution. In older
// Envoys they are fields of the cluster. A newer Envoy warns about each of these fields.
const DNSCluster = "envoy.cluster.dns"
