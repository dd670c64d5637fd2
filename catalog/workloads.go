package catalog

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// InboundPort is a port at which a workload stands behind a port of a service.
type InboundPort struct {
	ServiceDefinition
	Port   model.Port // the service's
	Target uint32     // the workload's own
}

// WorkloadAddress is where a workload is. Addresses of different networks may be the
// same; an endpoint that says no network is taken for one of every network.
type WorkloadAddress struct{ Network, Address string }

// servedKey says that a service has an endpoint at an address. There is one for each
// service and address and not for each endpoint: what is served there is looked up in
// the service, so that a change of weights or of health is none of the index.
type servedKey struct {
	// address is in canonical form. Where the endpoint's is written otherwise, that
	// follows after a space, which sorts before whatever else may follow.
	address string
	service unique.Handle[ServiceKey] // and not the key itself: there may be millions
}

func (k servedKey) compare(o servedKey) int {
	if at := strings.Compare(k.address, o.address); at != 0 || k.service == o.service {
		return at
	}
	return k.service.Value().compare(o.service.Value())
}

// written is the address as the endpoints have it.
func (k servedKey) written() string {
	return k.address[strings.IndexByte(k.address, ' ')+1:]
}

// servedKeyOf returns the key of an address; ok is false if it is no IP address.
func servedKeyOf(written string, service unique.Handle[ServiceKey]) (key servedKey, ok bool) {
	canonical, ok := canonicalIP(written)
	if canonical != written {
		canonical += " " + written
	}
	return servedKey{canonical, service}, ok
}

// canonicalIP returns the one form of an IP address, and the same string if it is in
// that form.
func canonicalIP(written string) (string, bool) {
	ip, err := netip.ParseAddr(written)
	switch {
	case err != nil || ip.Zone() != "":
		return "", false
	case ip.Is4(): // which is read in no other form
		return written, true
	}
	if form := ip.Unmap().String(); form != written {
		return form, true
	}
	return written, true
}

// ServedAt yields the ports of services of a namespace that a workload of a network
// stands behind, whoever the services are exported to. A service whose endpoints are
// names has no workloads that are known by address.
func (s *Snapshot) ServedAt(namespace string, at WorkloadAddress) iter.Seq[InboundPort] {
	return func(yield func(InboundPort) bool) {
		address, ok := canonicalIP(at.Address)
		if !ok {
			return
		}
		for key := range s.served.From(servedKey{address, unique.Make(ServiceKey{})}) {
			rest, here := strings.CutPrefix(key.address, address)
			if !here || rest != "" && rest[0] != ' ' {
				return
			}
			service, ok := s.services.Get(key.service.Value())
			if ok && service.Key.Namespace == namespace && !service.servedAt(key.written(), at.Network, yield) {
				return
			}
		}
	}
}

// servedAt yields what endpoints of an address serve.
func (s *Service) servedAt(address, network string, yield func(InboundPort) bool) bool {
	if !s.byAddress() {
		return true
	}
	for _, port := range s.Ports {
		for e := range s.Endpoints(port.Number).At(address) {
			within := e.Network == "" || e.Network == network
			if within && !yield(InboundPort{s.ServiceDefinition, port, e.Port}) {
				return false
			}
		}
	}
	return true
}

// byAddress reports whether the endpoints of the service are workloads at addresses.
func (d *Definition) byAddress() bool {
	return d.Resolution == model.ResolutionStatic || d.Resolution == model.ResolutionNone
}

// has reports whether the service has an endpoint at an address.
func (s *Service) has(address string) bool {
	if s == nil {
		return false
	}
	for _, endpoints := range s.endpoints {
		for range endpoints.At(address) {
			return true
		}
	}
	return false
}

// indexWorkloads brings the index to the state of the services, of which some changed.
func (s *Snapshot) indexWorkloads(changed map[ServiceKey]ServiceChange) {
	var served *immutable.Editor[servedKey, struct{}]
	for key, c := range changed {
		service := unique.Make(key)
		for id := range c.Endpoints {
			was, is := c.Old.has(id.Address), c.New.has(id.Address)
			at, ok := servedKeyOf(id.Address, service)
			if was == is || !ok {
				continue
			}
			if served == nil {
				served = s.served.Edit()
			}
			if is {
				served.Set(at, struct{}{})
			} else {
				served.Delete(at)
			}
		}
	}
	if served != nil {
		s.served = served.Map()
	}
}

// Workloads yields where those workloads are of which the change alters what they
// serve, or may: no other ones need be looked at. Some may come twice.
func (c ServiceChange) Workloads() iter.Seq[WorkloadAddress] {
	if c.Old != nil && c.New != nil && !c.Old.servesAs(c.New.Definition) {
		return func(yield func(WorkloadAddress) bool) { _ = c.Old.workloads(yield) && c.New.workloads(yield) }
	}
	return func(yield func(WorkloadAddress) bool) {
		for id := range c.Endpoints {
			was, had := c.Old.where(id)
			is, has := c.New.where(id)
			if was == is && had == has {
				continue
			}
			if had && !yield(was) || has && !yield(is) {
				return
			}
		}
	}
}

// servesAs reports whether two definitions make the same of workloads behind them.
func (d *Definition) servesAs(o *Definition) bool {
	return d.Resolution == o.Resolution && d.Rank == o.Rank && d.Meta.Created.Equal(o.Meta.Created) &&
		slices.EqualFunc(d.Ports, o.Ports, func(a, b model.Port) bool { return a.Number == b.Number && a.Protocol == b.Protocol })
}

func (s *Service) workloads(yield func(WorkloadAddress) bool) bool {
	for _, port := range s.Ports {
		for e := range s.Endpoints(port.Number).All() {
			if address, ok := canonicalIP(e.Address); ok && !yield(WorkloadAddress{e.Network, address}) {
				return false
			}
		}
	}
	return true
}

// where returns where the workload of an endpoint is, if there is one.
func (s *Service) where(id EndpointID) (WorkloadAddress, bool) {
	if s == nil {
		return WorkloadAddress{}, false
	}
	e, found := s.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	address, ok := canonicalIP(id.Address)
	if !found || !ok {
		return WorkloadAddress{}, false
	}
	return WorkloadAddress{e.Network, address}, true
}
