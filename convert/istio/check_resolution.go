package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// useWaypoint is the label that sends the traffic of a service through a waypoint.
const useWaypoint = "istio.io/use-waypoint"

// resolution checks the fields that each resolution allows.
func (c *serviceCheck) resolution() {
	at, endpoints := c.at.field("endpoints"), c.entry.GetEndpoints()
	switch mode := c.entry.GetResolution(); mode {
	case networking.ServiceEntry_NONE:
		if present(c.spec.Get("endpoints")) {
			c.p.add(at, "resolution NONE takes no endpoints: "+
				"remove them, or write resolution STATIC for addresses, DNS for names")
		}
	case networking.ServiceEntry_STATIC:
		c.endpoints(func(at trail, address string) {
			if address != "" && !isIP(address) && !isUnix(address) {
				c.p.add(at, "%q is not an IP address: write one or unix:///path, or use resolution DNS", address)
			}
		})
		c.unixNeedsOnePort()
	case networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN:
		c.hostsResolvable(mode)
		if mode == networking.ServiceEntry_DNS_ROUND_ROBIN && len(endpoints) > 1 {
			c.p.add(at, "resolution DNS_ROUND_ROBIN takes at most one endpoint: keep one, or use resolution DNS")
		}
		c.endpoints(func(at trail, address string) {
			if !isIP(address) && checkDomain(address) != nil {
				c.p.add(at, "%q is not a DNS name or IP address, and resolution %s takes nothing else: correct it", address, mode)
			}
		})
	case networking.ServiceEntry_DYNAMIC_DNS:
		c.dynamic()
	}
}

// hostsResolvable checks that there is a name to look up if there are no endpoints.
func (c *serviceCheck) hostsResolvable(mode networking.ServiceEntry_Resolution) {
	if len(c.entry.GetEndpoints()) > 0 {
		return
	}
	at := c.at.field("hosts")
	for i, host := range c.entry.GetHosts() {
		if checkHost(host) == nil && checkDomain(host) != nil {
			c.p.add(at.item(i), "%q cannot be looked up in DNS, and resolution %s has no endpoints to look up instead: "+
				"write a full name, or endpoints", host, mode)
		}
	}
}

func (c *serviceCheck) unixNeedsOnePort() {
	for i, endpoint := range c.entry.GetEndpoints() {
		if isUnix(endpoint.GetAddress()) && len(c.entry.GetPorts()) != 1 {
			at := c.at.field("endpoints")
			item := at.item(i)
			c.p.add(item.field("address"), "a unix socket takes exactly one service port, there are %d: "+
				"write one ServiceEntry for each", len(c.entry.GetPorts()))
			if c.p.pieces == nil {
				return // one problem is enough
			}
		}
	}
}

// dynamic checks the mode in which the proxy looks up the name that a request asks for.
func (c *serviceCheck) dynamic() {
	at := c.at.field("hosts")
	for i, host := range c.entry.GetHosts() {
		if !strings.HasPrefix(host, "*") {
			c.p.add(at.item(i), "resolution DYNAMIC_DNS is for wildcards, and %q is none: write *.domain, or use resolution DNS", host)
		}
	}
	if len(c.entry.GetAddresses()) > 0 {
		c.p.add(c.at.field("addresses"), "resolution DYNAMIC_DNS takes no addresses: remove them")
	}
	if len(c.entry.GetEndpoints()) > 0 {
		c.p.add(c.at.field("endpoints"), "resolution DYNAMIC_DNS takes no endpoints: remove them, or use resolution DNS")
	}
	ports := c.at.field("ports")
	for i, port := range c.entry.GetPorts() {
		switch strings.ToLower(port.GetProtocol()) {
		case "http", "http2", "grpc", "tls":
		default:
			at := ports.item(i)
			c.p.add(at.field("protocol"), "resolution DYNAMIC_DNS cannot tell the name to look up from protocol %q: "+
				"use HTTP, HTTP2, GRPC or TLS", port.GetProtocol())
		}
	}
	waypoint, _ := c.meta.spec.Labels.Get(useWaypoint)
	if c.entry.GetLocation() == networking.ServiceEntry_MESH_INTERNAL && waypoint != "" && !strings.EqualFold(waypoint, "none") {
		c.p.add(c.at.field("location"), "with a waypoint, resolution DYNAMIC_DNS is for MESH_EXTERNAL only: "+
			"change the location, or remove the label "+useWaypoint)
	}
}

// endpoints checks the inline endpoints. addressOf checks addresses that are valid in
// themselves, or empty beside a network.
func (c *serviceCheck) endpoints(addressOf func(trail, string)) {
	at := c.at.field("endpoints")
	for i, endpoint := range c.entry.GetEndpoints() {
		here := at.item(i)
		before := len(c.p.found)
		checkEndpoint(c.spec.Get("endpoints").Item(i), endpoint, here, c.p)
		if len(c.p.found) == before {
			addressOf(here.field("address"), endpoint.GetAddress())
		}
		ports := here.field("ports")
		for name := range endpoint.GetPorts() {
			if !c.ports[name] && isLabel(name) {
				c.p.add(ports.field(name), "the service has no port named %q: %s", name, hint(name, c.portNames()))
			}
		}
	}
}

func (c *serviceCheck) portNames() []string {
	var names []string
	for _, port := range c.entry.GetPorts() {
		names = append(names, port.GetName())
	}
	return names
}
