package istio

import (
	"net/netip"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// serviceCheck checks one ServiceEntry. The rules are those of Istio's admission webhook,
// and the rules of its schema that relate several fields. Whether a field is present at all
// is asked of the document, since the message no longer knows.
type serviceCheck struct {
	spec  *yamlpos.Node
	entry *networking.ServiceEntry
	meta  meta
	at    trail
	p     *problems
	ports map[string]bool // by name
}

func checkService(spec *yamlpos.Node, entry *networking.ServiceEntry, m meta, p *problems) {
	c := serviceCheck{spec: spec, entry: entry, meta: m, at: top("spec"), p: p}
	c.hosts()
	c.addresses()
	c.portList()
	c.selector()
	c.resolution()
	c.distinguishable()
	checkExportTo(entry.GetExportTo(), m.namespace, c.at.field("exportTo"), p)
}

func (c *serviceCheck) hosts() {
	at := c.at.field("hosts")
	for i, host := range c.entry.GetHosts() {
		if err := names.CheckHost(host); err != nil {
			c.p.add(at.item(i), "%v", err)
		}
	}
}

func (c *serviceCheck) addresses() {
	at, blocks := c.at.field("addresses"), true
	switch c.entry.GetResolution() {
	case networking.ServiceEntry_NONE, networking.ServiceEntry_STATIC:
	default:
		blocks = false
	}
	for i, address := range c.entry.GetAddresses() {
		_, err := netip.ParsePrefix(address)
		switch isBlock := strings.Contains(address, "/"); {
		case !isBlock && !names.IsIP(address), isBlock && err != nil:
			c.p.add(at.item(i), "%q is not an IP address or CIDR block: write 10.0.0.1 or 10.0.0.0/8", address)
		case strings.HasPrefix(names.NormalAddress(address), "255.255.255.255"):
			c.p.add(at.item(i), "%q is the broadcast address, to which nothing connects: write the address that clients call", address)
		case isBlock && !blocks:
			c.p.add(at.item(i), "a CIDR block goes with resolution NONE or STATIC only: write single addresses")
		}
	}
}

func (c *serviceCheck) portList() {
	c.ports = make(map[string]bool, len(c.entry.GetPorts()))
	numbers := make(map[uint32]bool, len(c.entry.GetPorts()))
	list := c.at.field("ports")
	for i, port := range c.entry.GetPorts() {
		at := list.item(i)
		name, number := port.GetName(), port.GetNumber()
		if c.ports[name] {
			c.p.add(at.field("name"), "another port is named %q, too: rename one", name)
		} else if name != "" {
			checkPortName(name, at.field("name"), c.p)
		}
		if numbers[number] {
			c.p.add(at.field("number"), "port %d is given twice: remove one", number)
		}
		checkProtocol(port.GetProtocol(), at.field("protocol"), c.p)
		c.ports[name], numbers[number] = true, true
	}
}

func checkPortName(name string, at trail, p *problems) {
	if !names.IsLabel(name) {
		p.add(at, "%q cannot be a port's name: use letters, digits and hyphens, at most 63", name)
	}
}

func checkProtocol(name string, at trail, p *problems) {
	if names.ProtocolOf(name) == names.UnknownProtocol {
		p.add(at, "unknown protocol %q: use one of %s", name, names.Protocols)
	}
}

func (c *serviceCheck) selector() {
	if !present(c.spec.Get("workloadSelector")) {
		return
	}
	at := c.at.field("workloadSelector")
	if present(c.spec.Get("endpoints")) {
		c.p.add(at, "only one of workloadSelector and endpoints can be given: remove one")
	}
	checkSelector(c.entry.GetWorkloadSelector(), at, c.p)
}

// checkSelector checks the selector of a ServiceEntry or Sidecar.
func checkSelector(selector *networking.WorkloadSelector, at trail, p *problems) {
	labels := at.field("labels")
	for key, value := range selector.GetLabels() {
		switch {
		case key == "" || strings.Contains(key, "*"):
			p.add(labels.field(key), "%q cannot select by: write the key of a label, without an asterisk", key)
		case strings.Contains(value, "*"):
			p.add(labels.field(key), "%q cannot be selected: write a label's value, without an asterisk", value)
		}
	}
}

// distinguishable checks that traffic to several hosts can be distinguished: by the
// authority of HTTP or the server name of TLS.
func (c *serviceCheck) distinguishable() {
	if c.entry.GetResolution() == networking.ServiceEntry_NONE || len(c.entry.GetHosts()) < 2 {
		return
	}
	ports := c.at.field("ports")
	for i, port := range c.entry.GetPorts() {
		if names.ProtocolOf(port.GetProtocol()) == names.OpaqueProtocol {
			at := ports.item(i)
			c.p.add(at.field("protocol"), "several hosts cannot share a port that is neither HTTP nor TLS: "+
				"write one ServiceEntry for each host")
		}
	}
}

func checkExportTo(exportTo []string, namespace string, at trail, p *problems) {
	seen := make(map[string]bool, len(exportTo))
	for i, to := range exportTo {
		if to == "." {
			to = namespace
		}
		switch {
		case to != "*" && to != "~" && !names.IsLabel(to):
			p.add(at.item(i), "%q is not a namespace: write one, or \".\" for this one, or \"*\" for all", to)
		case seen[to]:
			p.add(at.item(i), "namespace %q is given twice: remove one", to)
		}
		seen[to] = true
	}
	if len(seen) > 1 && (seen["*"] || seen["~"]) {
		p.add(at, "\"*\" (all) and \"~\" (none) stand alone: remove them or the others")
	}
}

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
			if address != "" && !names.IsIP(address) && !names.IsUnix(address) {
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
			if !names.IsIP(address) && names.CheckDomain(address) != nil {
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
		if names.CheckHost(host) == nil && names.CheckDomain(host) != nil {
			c.p.add(at.item(i), "%q cannot be looked up in DNS, and resolution %s has no endpoints to look up instead: "+
				"write a full name, or endpoints", host, mode)
		}
	}
}

func (c *serviceCheck) unixNeedsOnePort() {
	for i, endpoint := range c.entry.GetEndpoints() {
		if names.IsUnix(endpoint.GetAddress()) && len(c.entry.GetPorts()) != 1 {
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
			if !c.ports[name] && names.IsLabel(name) {
				c.p.add(ports.field(name), "the service has no port named %q: %s", name, hint{name, c.portNames()})
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
