package istio

import (
	"net/netip"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

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
		if err := checkHost(host); err != nil {
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
		case !isBlock && !isIP(address), isBlock && err != nil:
			c.p.add(at.item(i), "%q is not an IP address or CIDR block: write 10.0.0.1 or 10.0.0.0/8", address)
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
	if !isLabel(name) {
		p.add(at, "%q cannot be a port's name: use letters, digits and hyphens, at most 63", name)
	}
}

func checkProtocol(name string, at trail, p *problems) {
	if protocolOf(name) == unknownProtocol {
		p.add(at, "unknown protocol %q: use one of %s", name, protocolNames)
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
		if protocolOf(port.GetProtocol()) == opaqueProtocol {
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
		case to != "*" && to != "~" && !isLabel(to):
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
