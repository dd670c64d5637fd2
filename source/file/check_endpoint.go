package file

import (
	"path"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// resolution checks what may stand beside each way of finding endpoints.
func (c *serviceCheck) resolution() {
	at, endpoints := c.at.field("endpoints"), c.entry.GetEndpoints()
	switch mode := c.entry.GetResolution(); mode {
	case networking.ServiceEntry_NONE:
		if present(c.spec.Get("endpoints")) {
			c.v.add(at, "resolution NONE takes no endpoints: "+
				"remove them, or write resolution STATIC for addresses, DNS for names")
		}
	case networking.ServiceEntry_STATIC:
		c.endpoints(at, func(at trail, address string) {
			if !isIP(address) && !isUnix(address) {
				c.v.add(at, "%q is not an IP address: write one or unix:///path, or use resolution DNS", address)
			}
		})
		c.unixNeedsOnePort()
	case networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN:
		c.hostsResolvable(mode)
		if mode == networking.ServiceEntry_DNS_ROUND_ROBIN && len(endpoints) > 1 {
			c.v.add(at, "resolution DNS_ROUND_ROBIN takes at most one endpoint: keep one, or use resolution DNS")
		}
		c.endpoints(at, func(at trail, address string) {
			if isUnix(address) || !isIP(address) && checkDomain(address) != nil {
				c.v.add(at, "%q is not a DNS name or IP address, and resolution %s takes nothing else: correct it", address, mode)
			}
		})
	case networking.ServiceEntry_DYNAMIC_DNS:
		c.endpoints(at, func(trail, string) {}) // they have no effect
	default:
		c.v.add(c.at.field("resolution"), "unknown resolution %s: use NONE, STATIC, DNS or DNS_ROUND_ROBIN", mode)
	}
}

// hostsResolvable makes sure that without endpoints there is a name to look up.
func (c *serviceCheck) hostsResolvable(mode networking.ServiceEntry_Resolution) {
	if len(c.entry.GetEndpoints()) > 0 {
		return
	}
	at := c.at.field("hosts")
	for i, host := range c.entry.GetHosts() {
		if checkHost(host) == nil && checkDomain(host) != nil {
			c.v.add(at.item(i), "%q cannot be looked up in DNS, and resolution %s has no endpoints to look up instead: "+
				"write a full name, or endpoints", host, mode)
		}
	}
}

func (c *serviceCheck) unixNeedsOnePort() {
	for i, endpoint := range c.entry.GetEndpoints() {
		if isUnix(endpoint.GetAddress()) && len(c.entry.GetPorts()) != 1 {
			at := c.at.field("endpoints")
			item := at.item(i)
			c.v.add(item.field("address"), "a unix socket takes exactly one service port, there are %d: "+
				"write one ServiceEntry for each", len(c.entry.GetPorts()))
			return
		}
	}
}

// endpoints checks the inline endpoints; addressOf has the word on those
// addresses that are given.
func (c *serviceCheck) endpoints(at trail, addressOf func(trail, string)) {
	for i, endpoint := range c.entry.GetEndpoints() {
		here := at.item(i)
		before := len(c.v.problems)
		checkEndpoint(c.spec.Get("endpoints").Item(i), endpoint, here, c.v)
		if endpoint.GetAddress() != "" && len(c.v.problems) == before {
			addressOf(here.field("address"), endpoint.GetAddress())
		}
		ports := here.field("ports")
		for name := range endpoint.GetPorts() {
			if !c.ports[name] && isLabel(name) {
				c.v.add(ports.field(name), "the service has no port named %q: %s", name, hint(name, c.portNames()))
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

// checkEndpoint checks what holds for a WorkloadEntry wherever it stands.
func checkEndpoint(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, v *verdict) {
	checkAddress(node, entry, at, v)
	ports := at.field("ports")
	for name, number := range entry.GetPorts() {
		if !isLabel(name) {
			v.add(ports.field(name), "%q cannot be a port's name: use letters, digits and hyphens, at most 63", name)
		}
		if !isPort(number) {
			v.add(ports.field(name), "%d is not a port: use 1 to 65535", number)
		}
	}
	labels := at.field("labels")
	for key, value := range entry.GetLabels() {
		checkLabel(labels, key, value, v)
	}
}

func checkAddress(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, v *verdict) {
	address, here := entry.GetAddress(), at.field("address")
	socket, unix := strings.CutPrefix(address, unixPrefix)
	switch {
	case address == "" && entry.GetNetwork() == "":
		v.add(here, "missing: write an IP address, a DNS name or unix:///path, or a network")
	case address == "":
	case !unix && !isIP(address) && checkDomain(address) != nil:
		v.add(here, "%q is not an IP address, DNS name or unix:///path: correct it", address)
	case unix && !path.IsAbs(socket) && !(strings.HasPrefix(socket, "@") && len(socket) > 1):
		v.add(here, "%q is not a socket: write an absolute path, unix:///path, or unix://@name", address)
	case unix && strings.HasSuffix(socket, "/"):
		v.add(here, "%q is a directory: write the path of a socket", address)
	}
	if unix && present(node.Get("ports")) {
		v.add(at.field("ports"), "a unix socket has no ports: remove them")
	}
}
