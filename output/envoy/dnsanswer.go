package envoy

import (
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// A host is answered only with an address at which a call of it reaches the service. All
// other names are for the nameservers to answer.

// Addresses of services that have none of their own, where connections are redirected.
// They are in the ranges that Istio takes for that, and nobody else has them.
const (
	unroutableIPv4 = "240.240.0.1"
	unroutableIPv6 = "2001:2::f0f0:1"
)

// answering finds the addresses of services for a view.
type answering struct {
	view    View
	ports   map[uint32]*catalog.PortServices
	layouts map[uint32]layout // of the listeners that services share, as far as they were asked for
}

// sees reports whether whoever names the host of a service means that one.
func (a answering) sees(s catalog.ServiceDefinition) bool {
	if len(s.Ports) == 0 {
		return false
	}
	index := a.ports[s.Ports[0].Number]
	return index != nil && index.Means(a.view.viewer(), s)
}

// addresses lists those of a service; none if its name is not answered.
func (a answering) addresses(s catalog.ServiceDefinition) []string {
	if a.view.proxy.mode != none {
		if own := a.own(s); len(own) > 0 {
			return own
		}
	}
	if s.Resolution != model.ResolutionStatic || !a.reached(s) {
		return nil
	}
	switch ipv6 := a.view.proxy.family == ipv6; {
	case a.view.proxy.mode == none:
		return []string{a.view.proxy.shared()}
	case ipv6:
		return []string{unroutableIPv6}
	default:
		return []string{unroutableIPv4}
	}
}

// own lists the addresses of a service itself that the Envoy listens for.
func (a answering) own(s catalog.ServiceDefinition) (list []string) {
	foreign := s.ForeignIn(a.view.proxy.cluster)
	for address := range s.OwnAddressesIn(a.view.proxy.cluster) {
		ip, err := netip.ParseAddr(address)
		if err == nil && !ip.IsUnspecified() && a.view.proxy.family.has(address) && !(foreign && a.taken(s, address)) {
			list = append(list, ip.Unmap().String())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// taken reports whether an address of a service in another cluster is that of somebody
// else in the client's, at one of the service's ports.
func (a answering) taken(s catalog.ServiceDefinition, address string) bool {
	for _, port := range s.Ports {
		for other := range a.ports[port.Number].VisibleAt(a.view.viewer(), address) {
			at := other.OwnAddressesIn(a.view.proxy.cluster)
			if !other.ForeignIn(a.view.proxy.cluster) && slices.Contains(slices.Collect(at), address) {
				return true
			}
		}
	}
	return false
}

// reached reports whether calls of a service reach it at whatever address, because they
// name it, or because nobody else is called at the port. One port for which that does
// not hold is enough to say no: a call there would reach another service.
func (a answering) reached(s catalog.ServiceDefinition) bool {
	some := false
	for _, port := range s.Ports {
		kind := trafficOf(port)
		if kind == notTCP {
			continue
		}
		if !a.reachedAt(s, port, kind) {
			return false
		}
		some = true
	}
	return some
}

func (a answering) reachedAt(s catalog.ServiceDefinition, port model.Port, kind traffic) bool {
	shared := a.view.proxy.shared()
	if !hasCluster(s, port.Number) || !slices.Contains(slices.Collect(a.view.proxy.listensAt(s.Definition, port)), shared) {
		return false
	}
	cluster := ClusterName(s.Key.Host, port.Number)
	switch kind {
	case httpOnly, sniffed: // requests name the host
		return true
	case tlsOnly:
		name, ok := sniOf(s.Key.Host)
		return ok && slices.Contains(a.layout(port.Number).bySNI, chain{name, cluster, s.Traffic.Affinity})
	default:
		return a.layout(port.Number).other == cluster
	}
}

// layout is that of the listener that all services of a port share.
func (a answering) layout(number uint32) layout {
	l, known := a.layouts[number]
	if !known {
		l = layoutOf(slices.Collect(members(a.view, a.ports[number], a.view.proxy.shared())), number, true, a.view.proxy.cluster)
		a.layouts[number] = l
	}
	return l
}
