package envoy

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
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
	reaches map[uint32]arrivals // at the listeners that services share, as far as they were asked for
}

// sees reports whether whoever names the host of a service means that one.
func (a answering) sees(s catalog.ServiceDefinition) bool {
	if len(s.Ports) == 0 {
		return false
	}
	index := a.ports[s.Ports[0].Number]
	return index != nil && index.Means(a.view.viewer(), s)
}

// answers lists the addresses of a service, and those of some domains that are answered
// with them; none if no call would reach it.
func (a answering) answers(h *namedHost, domains []string) (addresses, names []string) {
	if a.view.proxy.mode != none {
		if own := a.own(h.ServiceDefinition); len(own) > 0 {
			return own, h.names(domains)
		}
	}
	if h.Resolution != model.ResolutionStatic || !a.reached(h.ServiceDefinition) {
		return nil, nil
	}
	return []string{a.instead()}, reaching(h, h.names(domains))
}

// reaching keeps the names by which calls reach a service without addresses: where the
// handshake says who is called, it has to say the host.
func reaching(h *namedHost, list []string) []string {
	if !slices.ContainsFunc(h.Ports, func(p model.Port) bool { return trafficOf(p) == tlsOnly }) {
		return list
	}
	host, _ := names.SNI(h.Key.Host)
	return slices.DeleteFunc(list, func(name string) bool { return name != host })
}

// instead is what is answered for services without addresses.
func (a answering) instead() string {
	switch {
	case a.view.proxy.mode == none:
		return a.view.proxy.shared()
	case a.view.proxy.family == ipv6:
		return unroutableIPv6
	default:
		return unroutableIPv4
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
		if a.ports[port.Number].TakenIn(a.view.proxy.cluster, address, a.view.viewer()) {
			return true
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
	listens := slices.Collect(a.view.proxy.listensAt(s, a.ports[port.Number]))
	if !hasCluster(s, port.Number) || !slices.Contains(listens, shared) || a.view.proxy.follows(s.Definition, port) || a.view.proxy.stays(s.Definition, port) {
		return false
	}
	at, cluster := a.arrivals(port.Number), names.Cluster(s.Key.Host, port.Number)
	switch kind {
	case httpOnly: // requests name the host
		return at.requests
	case tlsOnly:
		name, ok := names.SNI(s.Key.Host)
		return ok && at.bySNI[name] == cluster
	case sniffed: // it is called in both ways
		return at.requests && at.other == cluster
	default:
		return at.other == cluster
	}
}

// arrivals are where a listener that services share leads calls of the address that is
// answered for those without one.
type arrivals struct {
	requests bool              // go to the host that they name
	bySNI    map[string]string // clusters, by host
	other    string            // the cluster of all other connections
}

func (a answering) arrivals(number uint32) arrivals {
	at, known := a.reaches[number]
	if known {
		return at
	}
	shared, address := a.view.proxy.shared(), a.instead()
	if shared == address || !a.isListenedAt(address, number) {
		rest, requests := apartFromRequests(members(a.view, a.ports[number], shared), number)
		at = layoutOf(rest, number, true, a.view).arrivals(netip.MustParseAddr(address))
		at.requests = at.requests || requests
	}
	a.reaches[number] = at
	return at
}

// apartFromRequests leaves out the services of requests where all of them have these: to
// put thousands in order would say nothing else. That is so unless a server speaks first.
func apartFromRequests(services iter.Seq[catalog.ServiceDefinition], number uint32) (rest []catalog.ServiceDefinition, requests bool) {
	for s := range services {
		switch port, _ := s.Port(number); {
		case speaksFirst(port):
			return slices.Collect(services), false
		case trafficOf(port) == httpOnly:
			requests = true
		default:
			rest = append(rest, s)
		}
	}
	return rest, requests
}

// isListenedAt reports whether services have a listener of an address of their own.
func (a answering) isListenedAt(address string, number uint32) bool {
	for range members(a.view, a.ports[number], address) {
		return true
	}
	return false
}

// arrivals are those of an address. Of all connections that name no service, the service of
// the smallest block has those that go into it.
func (l layout) arrivals(address netip.Addr) arrivals {
	at, smallest := arrivals{requests: l.routes != "", bySNI: map[string]string{}, other: l.other}, -1
	for _, c := range l.byBlock {
		block := netip.MustParsePrefix(c.match)
		if block.Contains(address) && block.Bits() > smallest {
			smallest, at.other = block.Bits(), c.cluster
		}
	}
	for _, c := range l.bySNI {
		if smallest < 0 || !c.crowded {
			at.bySNI[c.match] = c.cluster
		}
	}
	return at
}
