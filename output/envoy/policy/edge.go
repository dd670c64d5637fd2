package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Edge configures the Envoys at the edge of the mesh.
type Edge struct {
	Ports []EdgePort `json:"ports"`
}

// EdgePort is a port that Envoys at the edge listen on, with the hosts that they expose there.
type EdgePort struct {
	Number   int    `json:"number"`
	Protocol string `json:"protocol"` // one of edgeProtocols
	// Hosts are patterns of the exposed hosts, as [model.HostWithin] takes them. For TCP it is
	// one host, for AUTO_PASSTHROUGH the hosts that other networks may call.
	Hosts []string `json:"hosts"`
	// LocalAddresses is allow or reject, for endpoints at local addresses.
	LocalAddresses string `json:"localAddresses"`
}

// SetDefaults sets the defaults of a port.
func (p *EdgePort) SetDefaults() { p.Protocol, p.LocalAddresses = EdgeHTTP, RejectLocal }

// The protocols of ports at the edge.
const (
	EdgeHTTP = "HTTP" // requests, led on by their authority
	EdgeTLS  = "TLS"  // connections, led on by the host in the handshake, as they are
	EdgeTCP  = "TCP"  // connections, led on by the port
	// EdgeAutoPassthrough takes TLS of the mesh from other networks, led on as it is by the
	// name in the handshake.
	EdgeAutoPassthrough = "AUTO_PASSTHROUGH"
)

var edgeProtocols = []string{EdgeHTTP, EdgeTLS, EdgeTCP, EdgeAutoPassthrough}

// The values of EdgePort.LocalAddresses.
const (
	AllowLocal  = "allow"
	RejectLocal = "reject"
)

// Exposes reports whether a host is behind the port.
func (p *EdgePort) Exposes(host string) bool {
	return model.HostWithin(host, model.ListOf(p.Hosts...))
}

// Port is the number of the port.
func (p *EdgePort) Port() uint32 { return uint32(p.Number) } //nolint:gosec // it is validated

func (e *Edge) validate(f *faults) {
	first := map[int]int{}
	for i := range e.Ports {
		p := &e.Ports[i]
		at := fmt.Sprintf("edge.ports[%d]", i)
		earlier, twice := first[p.Number]
		switch {
		case p.Number == 0:
			f.add(at+".number", "missing; name the port to listen on, such as 8080")
		case twice:
			f.add(at+".number", "%d is also the port of edge.ports[%d]; give each port one entry", p.Number, earlier)
		case IsOwnPort(p.Port()):
			f.add(at+".number", "%d is reserved for Envoy and Istio; choose another, such as 8080", p.Number)
		default:
			first[p.Number] = i
			f.within(at+".number", p.Number, 1, highestPort, "a number such as 8080")
		}
		if !slices.Contains(edgeProtocols, p.Protocol) {
			f.add(at+".protocol", "%q is none of %s", p.Protocol, strings.Join(edgeProtocols, ", "))
		}
		if p.LocalAddresses != AllowLocal && p.LocalAddresses != RejectLocal {
			f.add(at+".localAddresses", "%q is neither %s nor %s", p.LocalAddresses, AllowLocal, RejectLocal)
		}
		p.validateHosts(f, at+".hosts")
	}
}

func (p *EdgePort) validateHosts(f *faults, at string) {
	const oneHost = `a TCP connection does not name the service that it is for; name exactly one host, such as ["db.example.com"]`
	switch {
	case p.Protocol == EdgeTCP && len(p.Hosts) == 0:
		f.add(at, "missing; "+oneHost)
	case p.Protocol == EdgeTCP && len(p.Hosts) > 1:
		f.add(at, "%d hosts; "+oneHost, len(p.Hosts))
		return
	case p.Protocol == EdgeTCP && strings.HasPrefix(p.Hosts[0], "*"):
		f.add(at+"[0]", "%q is a wildcard; "+oneHost, p.Hosts[0])
		return
	case len(p.Hosts) == 0:
		f.add(at, `missing; name the hosts that the port exposes, such as ["*.example.com"], or ["*"] for all hosts that the edge may see`)
	}
	for i, host := range p.Hosts {
		name := strings.TrimPrefix(host, "*.")
		if host != "*" && (name == "" || strings.ContainsAny(name, "*/ :") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".")) {
			f.add(fmt.Sprintf("%s[%d]", at, i), `%q is not a host; write a DNS name, "*." and a domain, such as "*.example.com", or "*"`, host)
		}
	}
}
