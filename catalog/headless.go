package catalog

import (
	"iter"
	"net/netip"
	"strings"
	"unique"
)

// LargeHeadless bounds the endpoints of a headless service's port that is reached at the
// address of each endpoint. A larger one is reached at any address.
const LargeHeadless = 250

// isLarge reports whether a port of a headless service has too many endpoints to be reached
// at the address of each.
func (s *Service) isLarge(number uint32) bool {
	return s != nil && s.Headless() && s.Endpoints(number).Counts().Total > LargeHeadless
}

// IsLarge reports whether a service is headless and has more than [LargeHeadless] endpoints
// at the port.
func (p *PortServices) IsLarge(key ServiceKey) bool {
	_, large := p.large.Get(key)
	return large
}

// Resized reports whether a port of a headless service has passed [LargeHeadless]
// endpoints, in either direction.
func (c ServiceChange) Resized() bool {
	for _, s := range []*Service{c.Old, c.New} {
		if s == nil || !s.Headless() {
			continue
		}
		for _, port := range s.Ports {
			if c.Old.isLarge(port.Number) != c.New.isLarge(port.Number) {
				return true
			}
		}
	}
	return false
}

// HeadlessAt yields the headless services that a viewer may reach at a port by the address
// of an endpoint, in its canonical form, healthy or not. They come in no order, and a
// service may come twice. Services of more than [LargeHeadless] endpoints are left out.
func (s *Snapshot) HeadlessAt(v Viewer, number uint32, address string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		index := s.Port(number)
		if form, ok := canonicalIP(address); index == nil || !ok || form != address || !connectable(address) {
			return
		}
		for key := range s.servedUnder(address) {
			service, ok := s.services.Get(key.service.Value())
			if !ok || !service.Headless() || service.isLarge(number) || !service.isServed(number, address, key.written()) {
				continue
			}
			if index.Means(v, service.ServiceDefinition) && !yield(service.ServiceDefinition) {
				return
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

// isServed reports whether a port has an endpoint at an address. written is the endpoint's
// first address, as written.
func (s *Service) isServed(number uint32, address, written string) bool {
	for e := range s.Endpoints(number).At(written) {
		if e.isAt(address) {
			return true
		}
	}
	return false
}

// EndpointAddresses yields the connectable IP addresses of the endpoints of a port, in
// canonical form. An address may come twice.
func (s *Service) EndpointAddresses(number uint32) iter.Seq[string] {
	return func(yield func(string) bool) {
		for e := range s.Endpoints(number).All() {
			if !e.whereabouts(func(at WorkloadAddress) bool { return !connectable(at.Address) || yield(at.Address) }) {
				return
			}
		}
	}
}

// connectable reports whether other machines can connect to an address in canonical form.
func connectable(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && !ip.IsUnspecified() && !ip.IsLoopback()
}
