package envoy

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// A service port is reached through the listener of an address and a port. Which
// one follows from the service alone, so that a service that comes changes no
// listener but those that it is reached through.

// listensAt yields the addresses on which Envoys listen for a port of a service, but for
// those of its endpoints.
func (p proxy) listensAt(s catalog.ServiceDefinition, index *catalog.PortServices) iter.Seq[string] {
	return func(yield func(string) bool) {
		port, _ := s.Port(index.Number)
		kind := trafficOf(port)
		switch {
		case kind == notTCP, p.reserved(port.Number), p.apart(s, index):
			return
		case p.mode == none, kind == httpOnly:
			if p.opens(port.Number) {
				yield(p.shared())
			}
			return
		}
		shares := true
		for address := range s.OwnAddressesIn(p.cluster) {
			shares = false
			if p.family.has(address) && !yield(address) {
				return
			}
		}
		for range s.BlocksIn(p.cluster) {
			shares = true
			break
		}
		if shares && p.opens(port.Number) {
			yield(p.shared())
		}
	}
}

// sharesListener reports whether a service is reached through the listener that services of
// a port share.
func (p proxy) sharesListener(s catalog.ServiceDefinition, index *catalog.PortServices) bool {
	for at := range p.listensAt(s, index) {
		if at == p.shared() {
			return true
		}
	}
	return false
}

// reserved reports whether a port is one of the Envoy's own. Two listeners of one
// address and port would be rejected together.
func (p proxy) reserved(number uint32) bool {
	return p.mode != none && (number == policy.OutboundPort || number == policy.InboundPort)
}

// has reports whether Envoys with addresses of a family connect to an address.
func (f family) has(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && (f == unknownFamily || f == both || ip.Unmap().Is4() == (f == ipv4))
}

// members yields the services that a viewer reaches through a listener: by host through the
// one that services share, by ownership through that of an address.
func members(v View, index *catalog.PortServices, address string) iter.Seq[catalog.ServiceDefinition] {
	if address != v.proxy.shared() {
		return slices.Values(askingAt(v, index, address).connections())
	}
	return func(yield func(catalog.ServiceDefinition) bool) {
		for s := range index.Visible(v.viewer()) {
			if hasCluster(s, index.Number) && v.proxy.sharesListener(s, index) && !yield(s) {
				return
			}
		}
	}
}

// atAddress are the services that ask for an address and a port, the owner first.
type atAddress struct {
	port uint32
	list []catalog.ServiceDefinition
}

// askingAt returns the services that a viewer calls at an address.
func askingAt(v View, index *catalog.PortServices, address string) atAddress {
	if index == nil || v.proxy.mode == none || v.proxy.reserved(index.Number) || !v.proxy.family.has(address) {
		return atAddress{}
	}
	all := atAddress{port: index.Number}
	for _, s := range index.CalledAt(v.viewer(), v.proxy.cluster, address) {
		if port, _ := s.Port(index.Number); trafficOf(port) != notTCP && hasCluster(s, index.Number) && !v.proxy.apart(s, index) {
			all.list = append(all.list, s)
		}
	}
	slices.SortFunc(all.list, func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner(v.Namespace, a, b) })
	return all
}

// requests reports whether the port of a service carries requests alone. They are routed by
// the listener that services share, so one of the address would take them from their owner.
func (a atAddress) requests(s catalog.ServiceDefinition) bool {
	port, _ := s.Port(a.port)
	return trafficOf(port) == httpOnly
}

// connections lists the services that are reached through a listener of the address: none
// if the owner takes requests.
func (a atAddress) connections() []catalog.ServiceDefinition {
	if len(a.list) == 0 || a.requests(a.list[0]) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(a.list), a.requests)
}

// hasCluster reports whether Envoys have a cluster for a port of the service.
func hasCluster(s catalog.ServiceDefinition, number uint32) bool {
	port, _ := s.Port(number)
	f, _ := offer(KindEnvoy, &catalog.Service{ServiceDefinition: s}, port)
	return f != noForm
}
