package catalog

import (
	"iter"
	"slices"
	"strings"
	"unique"

	"github.com/isthmus-mesh/isthmus/catalog/crowd"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/model"
)

// MostInstances bounds the instances of a port that Envoys listen at: see [crowd.Most].
const MostInstances = crowd.Most

// ChosenAt reports whether clients of a cluster choose an instance by its address at a port, because the
// service has no address of its own there.
func (d *Definition) ChosenAt(cluster string, number uint32) bool {
	list, _ := d.AddressesIn(cluster)
	return d.ResolutionAt(number) == model.ResolutionStatic && !d.Traffic.ClusterLocal && list.Len() == 0
}

// instances returns the number of endpoints of a port that clients choose among.
func (s *Service) instances(number uint32) int {
	if s == nil || !s.ChosenAt("", number) {
		return 0
	}
	if port, ok := s.Port(number); !ok || port.IsHTTP() || port.IsUDP() {
		return 0
	}
	return s.Endpoints(number).Counts().Total
}

// crowdsBy returns how a change alters the numbers of instances of ports.
func crowdsBy(changed map[ServiceKey]ServiceChange) map[uint32]crowd.Step {
	steps := map[uint32]crowd.Step{}
	for _, c := range changed {
		for _, s := range []*Service{c.Old, c.New} {
			if s == nil {
				continue
			}
			for _, port := range s.Ports {
				number := port.Number
				was, is := c.Old.instances(number), c.New.instances(number)
				if was+is == 0 || (s == c.Old) != (is == 0) { // each port once
					continue
				}
				redefined := c.Old == nil || c.New == nil || c.Old.Definition != c.New.Definition
				steps[number] = steps[number].Then(was, is, redefined)
			}
		}
	}
	return steps
}

// HasInstances reports whether clients choose among the endpoints of some port.
func (s *Snapshot) HasInstances() bool { return s.crowds.Len() > 0 }

// Crowded returns the ports at which a change may alter for which services an Envoy listens at
// instances: ports with more than [MostInstances] instances, before or after the change, and a
// service that asks for another share of the listeners. s is the snapshot after the change.
func (s *Snapshot) Crowded(c Change) (ports []uint32) {
	for number, step := range crowdsBy(c.Services) {
		if s.crowds.Moved(number, step) {
			ports = append(ports, number)
		}
	}
	slices.Sort(ports)
	return ports
}

// Asked returns the part of [MostInstances] that a service asks for. The port is crowded if services
// without addresses have more endpoints together.
func (p *PortServices) Asked(key ServiceKey) (share int, crowded bool) {
	share, _ = p.asked.Get(key)
	return share, p.asked.Len() > 0
}

// InstancesAt yields the ports of services without addresses that have an endpoint, healthy or not,
// at an address, in canonical form, and port. The order is arbitrary, and a port may come twice.
func (s *Snapshot) InstancesAt(address string, number uint32) iter.Seq2[InboundPort, Endpoint] {
	return func(yield func(InboundPort, Endpoint) bool) {
		if form, ok := ip.Canonical(address); !ok || form != address || !ip.Connectable(address) {
			return
		}
		for key := range s.servedUnder(address) {
			service, ok := s.services.Get(key.service.Value())
			if !ok {
				continue
			}
			for _, port := range service.Ports {
				e, ok := service.instanceAt(port.Number, address, key.first(), number)
				if ok && service.ChosenAt("", port.Number) && !yield(InboundPort{service.ServiceDefinition, port, number}, e) {
					return
				}
			}
		}
	}
}

// servedUnder yields the entries of the index of workloads for an address.
func (s *Snapshot) servedUnder(address string) iter.Seq[servedKey] {
	return func(yield func(servedKey) bool) {
		for key := range s.served.From(servedKey{address, unique.Make(ServiceKey{})}) {
			rest, here := strings.CutPrefix(key.address, address)
			if !here || rest != "" && rest[0] != ' ' || !yield(key) {
				return
			}
		}
	}
}

// instanceAt returns the endpoint of a port at an address and port. first is the endpoint's first
// address.
func (s *Service) instanceAt(number uint32, address, first string, at uint32) (Endpoint, bool) {
	for _, e := range s.Endpoints(number).AtPort(first, at) {
		if e.isAt(address) {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Connectable yields the IP addresses of an endpoint that other machines can connect to, in
// canonical form.
func (e Endpoint) Connectable() iter.Seq[string] {
	return func(yield func(string) bool) {
		e.whereabouts(func(at WorkloadAddress) bool { return !ip.Connectable(at.Address) || yield(at.Address) })
	}
}
