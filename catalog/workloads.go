package catalog

import (
	"iter"
	"slices"
	"strings"
	"unique"

	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// InboundPort is a port of a workload behind a port of a service.
type InboundPort struct {
	ServiceDefinition
	Port   model.Port // the service's
	Target uint32     // the workload's own
}

// WorkloadAddress is the address of a workload. Different networks may have the same
// addresses; an endpoint without a network counts as part of every network.
type WorkloadAddress struct{ Network, Address string }

// servedKey is the fact that a service has an endpoint at an address. There is one for each
// service and address and not for each endpoint: the served ports are looked up in the
// service. A change of weights or of health therefore does not affect the index.
type servedKey struct {
	// address is in canonical form. If the endpoint's first address is another one, it follows
	// after a space. A space sorts before any character that may follow.
	address string
	service unique.Handle[ServiceKey] // not the key itself: there may be millions
}

func (k servedKey) compare(o servedKey) int {
	if at := strings.Compare(k.address, o.address); at != 0 || k.service == o.service {
		return at
	}
	return k.service.Value().Compare(o.service.Value())
}

// first returns the first address of the endpoints.
func (k servedKey) first() string {
	return k.address[strings.IndexByte(k.address, ' ')+1:]
}

// servedKeys adds to keys the index keys of the endpoints of a first address.
func (s *Service) servedKeys(keys []servedKey, first string, service unique.Handle[ServiceKey]) []servedKey {
	if s == nil {
		return keys
	}
	add := func(key servedKey) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, endpoints := range s.joined {
		for e := range endpoints.At(first) {
			if _, ok := ip.Canonical(first); ok {
				add(servedKey{first, service})
			}
			for other := range e.otherIPs() {
				add(servedKey{other + " " + first, service})
			}
		}
	}
	return keys
}

// otherIPs yields the further IP addresses of an instance, except its first one.
func (i *Instance) otherIPs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for other := range i.Also.All() {
			if _, ok := ip.Canonical(other); ok && other != i.Address && !yield(other) {
				return
			}
		}
	}
}

// isAt reports whether an instance has an address, which is in canonical form.
func (i *Instance) isAt(address string) bool {
	return i.Address == address || i.Also.Contains(address)
}

// ServedAt yields the ports of services of a namespace that a workload of a network serves,
// regardless of the services' exports. A service with DNS names as endpoints has no
// workloads that are known by address.
func (s *Snapshot) ServedAt(namespace string, at WorkloadAddress) iter.Seq[InboundPort] {
	return func(yield func(InboundPort) bool) {
		address, ok := ip.Canonical(at.Address)
		if !ok {
			return
		}
		for key := range s.servedUnder(address) {
			service, ok := s.services.Get(key.service.Value())
			if ok && service.Key.Namespace == namespace && !service.servedAt(address, key.first(), at.Network, yield) {
				return
			}
		}
	}
}

// servedAt yields the ports that endpoints of an address serve. Their first address is
// written.
func (s *Service) servedAt(address, written, network string, yield func(InboundPort) bool) bool {
	for _, port := range s.Ports {
		if s.ResolutionAt(port.Number).LooksUp() {
			continue // its endpoints are names
		}
		for e := range s.Joined(port.Number).At(written) {
			within := (e.Network == "" || e.Network == network) && e.isAt(address)
			if within && !yield(InboundPort{s.ServiceDefinition, port, e.Port}) {
				return false
			}
		}
	}
	return true
}

// servedAfter returns the services at each address after some services changed.
func servedAfter(before immutable.Map[servedKey, struct{}], changed map[ServiceKey]ServiceChange) immutable.Map[servedKey, struct{}] {
	var served *immutable.Editor[servedKey, struct{}]
	var was, is []servedKey
	for key, c := range changed {
		service := unique.Make(key)
		for id := range c.Endpoints {
			was, is = c.Old.servedKeys(was[:0], id.Address, service), c.New.servedKeys(is[:0], id.Address, service)
			served = replaceServed(before, served, was, is)
		}
	}
	if served == nil {
		return before
	}
	return served.Map()
}

// replaceServed replaces some entries by others. There is no editor before the first
// difference.
func replaceServed(before immutable.Map[servedKey, struct{}], served *immutable.Editor[servedKey, struct{}], was, is []servedKey) *immutable.Editor[servedKey, struct{}] {
	edit := func() *immutable.Editor[servedKey, struct{}] {
		if served == nil {
			served = before.Edit()
		}
		return served
	}
	for _, key := range was {
		if !slices.Contains(is, key) {
			edit().Delete(key)
		}
	}
	for _, key := range is {
		if !slices.Contains(was, key) {
			edit().Set(key, struct{}{})
		}
	}
	return served
}

// Workloads yields the addresses of the workloads for which the change alters the served
// ports, or may. Other workloads need no look. An address may come twice.
func (c ServiceChange) Workloads() iter.Seq[WorkloadAddress] {
	if c.Old != nil && c.New != nil && !c.Old.servesAs(c.New.Definition) {
		return func(yield func(WorkloadAddress) bool) { _ = c.Old.workloads(yield) && c.New.workloads(yield) }
	}
	return func(yield func(WorkloadAddress) bool) {
		for id := range c.Endpoints {
			was, is := c.Old.where(id), c.New.where(id)
			if was.sameWhereabouts(is) {
				continue
			}
			if !was.whereabouts(yield) || !is.whereabouts(yield) {
				return
			}
		}
	}
}

func (s *Service) workloads(yield func(WorkloadAddress) bool) bool {
	for _, port := range s.Ports {
		for e := range s.Joined(port.Number).All() {
			if !e.whereabouts(yield) {
				return false
			}
		}
	}
	return true
}

// where returns an endpoint; zero if there is none.
func (s *Service) where(id EndpointID) (e Endpoint) {
	if s != nil {
		e, _ = s.Joined(id.ServicePort).Get(id)
	}
	return e
}

// whereabouts yields the addresses of an endpoint's workload.
func (e Endpoint) whereabouts(yield func(WorkloadAddress) bool) bool {
	if e.Instance == nil {
		return true
	}
	if e.isIP() && !yield(WorkloadAddress{e.Network, e.Address}) {
		return false
	}
	for other := range e.otherIPs() {
		if !yield(WorkloadAddress{e.Network, other}) {
			return false
		}
	}
	return true
}

// sameWhereabouts reports whether the workloads of two states of one endpoint are at
// the same addresses.
func (e Endpoint) sameWhereabouts(o Endpoint) bool {
	return e == o || e.Instance != nil && o.Instance != nil && e.Network == o.Network && e.Also.Equal(o.Also)
}
