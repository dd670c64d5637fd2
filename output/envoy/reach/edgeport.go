package reach

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// EdgeMember is a service that the edge leads to, and the port that it is called at.
type EdgeMember struct {
	catalog.ServiceDefinition
	At    uint32
	Place int // among the ports that would do: less is better
}

// Cluster returns the name of the cluster of the port.
func (m EdgeMember) Cluster() string { return names.Cluster(m.Key.Host, m.At) }

// EdgeAsks is the thing that services of a port of the edge ask for.
func EdgeAsks(p *policy.EdgePort) catalog.Asked {
	if p.Protocol == policy.EdgeTCP {
		return catalog.Address
	}
	return catalog.Name
}

// EdgeTakes reports whether a port of the edge can be routed to the port of a service, and how
// well the two fit: 0 is best.
func EdgeTakes(p *policy.EdgePort, port model.Port) (place int, ok bool) {
	const same, certain, perhaps = 0, 1, 2
	kind := TrafficOf(port)
	switch p.Protocol {
	case policy.EdgeHTTP:
		ok = kind == HTTP || kind == Detected
	case policy.EdgeTLS:
		ok = kind == TLS
	default: // only the number identifies the service
		ok = (kind == TCP || kind == Detected) && p.Port() == port.Number
	}
	switch {
	case p.Port() == port.Number:
		return same, ok
	case kind == Detected:
		return perhaps, ok
	default:
		return certain, ok
	}
}

// EdgeMemberOf is a service as a port of the edge leads to it; ok is false if the port does not
// expose it, or cannot lead to it.
func EdgeMemberOf(p *policy.EdgePort, s catalog.ServiceDefinition) (member EdgeMember, ok bool) {
	if !p.Exposes(s.Key.Host) {
		return member, false
	}
	return EdgeCalls(p, s)
}

// EdgeCalls returns a service with the port that fits a port of the edge best; ok is false if
// none fits.
func EdgeCalls(p *policy.EdgePort, s catalog.ServiceDefinition) (best EdgeMember, ok bool) {
	if s.Traffic.ClusterLocal {
		return best, false
	}
	for _, port := range s.Ports {
		place, takes := EdgeTakes(p, port)
		if !takes || s.ResolutionAt(port.Number) == model.ResolutionNone || !HasCluster(s, port.Number) {
			continue
		}
		if !ok || place < best.Place || place == best.Place && port.Number < best.At {
			best, ok = EdgeMember{s, port.Number, place}, true
		}
	}
	return best, ok
}
