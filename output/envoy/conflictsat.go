package envoy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
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
		if marks[inboundTraffic(other)] == marks[inboundTraffic(ours)] {
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
	if inboundTraffic(ours) == notTCP || (proxy{}).reserved(ours.Target) {
		return ours
	}
	best, found := c.first(ours.Key.Namespace, at)[ours.Target]
	if !found || decides(ours, best) {
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
		if best, found := ports[other.Target]; inboundTraffic(other) != notTCP && (!found || decides(other, best)) {
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

// foldedHosts are the services whose hosts differ from another's in case alone.
func foldedHosts(now *catalog.Snapshot) map[string][]*catalog.Service {
	all := map[string][]*catalog.Service{}
	for s := range now.Services() {
		key := foldedHost(s)
		all[key] = append(all[key], s)
	}
	for key, services := range all {
		if len(services) == 1 {
			delete(all, key)
		}
	}
	return all
}

func foldedHost(s *catalog.Service) string {
	return strings.TrimSuffix(strings.ToLower(s.Key.Host), ".")
}

// atEdge finds the owner of the host that a port of the edge leads to instead.
func (c conflicts) atEdge(s *catalog.Service, port *EdgePort) []catalog.Conflict {
	if port.Protocol == edgeTCP || !port.leadsTo(s.ServiceDefinition) {
		return nil
	}
	rivals := &claimants{by: catalog.Name, means: c.means}
	for _, other := range c.folded[foldedHost(s)] {
		if other.Key != s.Key && port.leadsTo(other.ServiceDefinition) {
			rivals.add(other.ServiceDefinition, "")
		}
	}
	winner, lost := rivals.winner(s.ServiceDefinition, want{})
	if !lost {
		return nil
	}
	own := rivals.compare(winner, s.ServiceDefinition) > 0
	w := want{
		field: fmt.Sprintf("edge.ports[%d].hosts", port.Number),
		asked: fmt.Sprintf("calls of port %d of the edge for", port.Number), next: otherHost,
	}
	return []catalog.Conflict{loss{w, winner, own, []string{s.Key.Host}}.conflict(s.ServiceDefinition)}
}

func (c conflicts) means(v catalog.Viewer, s catalog.ServiceDefinition) bool {
	is, found := c.now.Resolve(v, s.Key.Host)
	return found && is.Key == s.Key
}

// leadsTo reports whether a port of the edge would lead to a service if that was alone.
func (p *EdgePort) leadsTo(s catalog.ServiceDefinition) bool {
	if s.Resolution == model.ResolutionNone || !p.exposes(s.Key.Host) {
		return false
	}
	for _, port := range s.Ports {
		if _, ok := p.takes(port); ok && hasCluster(s, port.Number) {
			return true
		}
	}
	return false
}
