package conflict

import (
	"cmp"
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// inbound finds a workload whose sidecar takes a port of the service for another protocol,
// since another service owns the port of the workload.
func (c report) inbound(s *catalog.Service, number uint32) []catalog.Conflict {
	own, _ := s.Port(number)
	if s.ResolutionAt(number) != model.ResolutionStatic {
		return nil
	}
	for e := range s.Endpoints(number).All() {
		ours := catalog.InboundPort{ServiceDefinition: s.ServiceDefinition, Port: own, Target: e.Port}
		other := c.inboundOwner(ours, catalog.WorkloadAddress{Network: e.Network, Address: e.Address})
		if reach.InboundTraffic(other) == reach.InboundTraffic(ours) {
			continue
		}
		return []catalog.Conflict{{
			Field: fmt.Sprintf("ports[%d].protocol", number), Kept: other.Records[0].Record, Lost: s.Records[0].Record,
			Reason: fmt.Sprintf("sidecars take port %d of the workload %s for %s, as port %d of %s says, and not for %s; give the endpoints of the two another port each, or both ports the same protocol",
				e.Port, e.Address, spoken(other.Port), other.Port.Number, other.Key.Host, spoken(own)),
		}}
	}
	return nil
}

// inboundOwner returns the service port that decides the protocol of a port of a workload.
func (c report) inboundOwner(ours catalog.InboundPort, at catalog.WorkloadAddress) catalog.InboundPort {
	if reach.InboundTraffic(ours) == reach.NotTCP || (node.Proxy{}).Reserved(ours.Target) {
		return ours
	}
	best, found := c.inboundOwners(ours.Key.Namespace, at)[ours.Target]
	if !found || reach.DecidesInbound(ours, best) {
		return ours
	}
	return best
}

// inboundOwners returns the service ports that decide the protocols of a workload's ports, by
// the ports of the workload. The owners at a workload of many services are cached.
func (c report) inboundOwners(namespace string, at catalog.WorkloadAddress) map[uint32]catalog.InboundPort {
	key := workloadIn{namespace, at}
	if known := c.owners[key]; known != nil {
		return known
	}
	ports, n := map[uint32]catalog.InboundPort{}, 0
	for other := range c.now.ServedAt(namespace, at) {
		n++
		if best, found := ports[other.Target]; reach.InboundTraffic(other) != reach.NotTCP && (!found || reach.DecidesInbound(other, best)) {
			ports[other.Target] = other
		}
	}
	if n > fewPorts {
		c.owners[key] = ports
	}
	return ports
}

// workloadIn is a workload of the services of a namespace.
type workloadIn struct {
	namespace string
	at        catalog.WorkloadAddress
}

// fewPorts is the most service ports of a workload whose owners are not cached.
const fewPorts = 64

func spoken(p model.Port) string { return cmp.Or(p.Protocol, "any protocol") }
