package envoy

import (
	"cmp"
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// inbound finds who else says what a port of the service's workloads carries, and counts.
// One such workload is named.
func (c conflicts) inbound(s *catalog.Service, number uint32) []catalog.Conflict {
	own, _ := s.Port(number)
	if s.Resolution != model.ResolutionStatic {
		return nil
	}
	for e := range s.Endpoints(number).All() {
		ours := catalog.InboundPort{ServiceDefinition: s.ServiceDefinition, Port: own, Target: e.Port}
		other := c.decider(ours, catalog.WorkloadAddress{Network: e.Network, Address: e.Address})
		if marks[reach.InboundTraffic(other)] == marks[reach.InboundTraffic(ours)] {
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

// decider is the port that says what a port of a workload carries.
func (c conflicts) decider(ours catalog.InboundPort, at catalog.WorkloadAddress) catalog.InboundPort {
	if reach.InboundTraffic(ours) == reach.NotTCP || (node.Proxy{}).Reserved(ours.Target) {
		return ours
	}
	best, found := c.first(ours.Key.Namespace, at)[ours.Target]
	if !found || reach.DecidesInbound(ours, best) {
		return ours
	}
	return best
}

// first are the ports that say what the ports of a workload carry, by these. Those of a
// workload that many services have are kept for the next of them.
func (c conflicts) first(namespace string, at catalog.WorkloadAddress) map[uint32]catalog.InboundPort {
	key := workloadIn{namespace, at}
	if known := c.deciders[key]; known != nil {
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
		c.deciders[key] = ports
	}
	return ports
}

// workloadIn is a workload, as the services of a namespace have it.
type workloadIn struct {
	namespace string
	at        catalog.WorkloadAddress
}

// fewPorts are as many as are gone through again for each service of a workload.
const fewPorts = 64

func spoken(p model.Port) string { return cmp.Or(p.Protocol, "any protocol") }
