package envoy

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// sharedByAll are the listeners and routes that any service may be part of.
func sharedByAll(s *policy.Prepared) []sharedName {
	list := edgeNames(s)
	if s.DNS != nil {
		list = append(list, sharedName{ListenerType, names.DNSListener})
	}
	return list
}

// findDNSListener returns the listener that answers lookups.
func findDNSListener(w *state, v View) (world.Subject, bool) {
	if w.settings.DNS == nil || w.definitions == nil || v.proxy.Unprivileged && w.settings.DNS.Port < world.FirstUnprivilegedPort {
		return nil, false
	}
	v.single = false // routes do not matter here
	return dnsListener{proxySlot{ListenerType, names.DNSListener, v}, w.definitions}, true
}

// dnsListener answers lookups of the hosts that a view sees.
type dnsListener struct {
	proxySlot
	services *definitions
}

// Refers implements [world.Referrer].
func (dnsListener) Refers(string) iter.Seq[string] { return nothing }

// Encode implements [world.Subject].
func (l dnsListener) Encode() world.Encoded {
	return l.encode(l.table())
}

// table is the table of answers, by host.
func (l dnsListener) table() *vhost.Pieces {
	a := answering{client: l.view.client(), ports: map[uint32]*catalog.PortServices{}, reaches: map[destination]reach.Destinations{}}
	for index := range l.services.byPort {
		a.ports[index.Number] = index
	}
	all, table := l.services.names, &vhost.Pieces{}
	for h := range all.Named {
		if !a.sees(h.ServiceDefinition) {
			continue
		}
		domains := h.DomainsFor(h.OwnFor(l.view.Namespace))
		if h.InConflict {
			domains = h.WonBy(all.Candidates, l.view.Namespace, a.sees)
		}
		if addresses, names := a.answers(h, domains); len(names) > 0 {
			table.Add(h.FragmentOf(names, addresses, l.view.settings.DNS.TTL))
		}
	}
	return table
}

// encode puts the listener around its table.
func (l dnsListener) encode(table *vhost.Pieces) world.Encoded {
	loopback := node.Proxy{Mode: node.None, Family: l.view.proxy.Family}.Shared()
	body := wire.DNSListener(l.name, loopback, l.view.settings.DNS, table.Size())
	return world.Encoded{Name: l.name, Version: vhost.VersionOf(body).Plus(table.Sum), Body: body, Tail: table}
}

// A host is answered only with an address at which a call of it reaches the service. All
// other names are for the nameservers to answer.

// answering finds the addresses of services for a view.
type answering struct {
	client  reach.Client
	ports   map[uint32]*catalog.PortServices
	reaches map[destination]reach.Destinations // as far as they were asked for
}

// destination is the address and port that connections are made to.
type destination struct {
	address string
	number  uint32
}

// sees reports whether the host of a service resolves to that service for the client.
func (a answering) sees(s catalog.ServiceDefinition) bool {
	if len(s.Ports) == 0 {
		return false
	}
	index := a.ports[s.Ports[0].Number]
	return index != nil && index.Means(a.client.Viewer, s)
}

// answers lists the addresses of a service, and those of some domains that are answered
// with them; none if no call would reach it.
func (a answering) answers(h *vhost.LookupHost, domains []string) (addresses, names []string) {
	if a.client.Proxy.Mode != node.None {
		if own := a.own(h.ServiceDefinition); len(own) > 0 {
			return own, h.Names(domains)
		}
	}
	isStatic := func(p model.Port) bool { return h.ResolutionAt(p.Number) == model.ResolutionStatic }
	if !slices.ContainsFunc(h.Ports, isStatic) || !a.reached(h.ServiceDefinition, a.instead()) {
		return nil, nil
	}
	return []string{a.instead()}, reaching(h, h.Names(domains))
}

// reaching keeps the names by which calls reach a service without addresses: if a port is
// routed by SNI, only the host itself.
func reaching(h *vhost.LookupHost, list []string) []string {
	if !slices.ContainsFunc(h.Ports, func(p model.Port) bool { return reach.TrafficOf(p) == reach.TLS }) {
		return list
	}
	return slices.DeleteFunc(list, func(name string) bool { return name != h.Key.Host })
}

// instead is the address in the answers for services without addresses.
func (a answering) instead() string {
	switch {
	case a.client.Proxy.Mode == node.None:
		return a.client.Proxy.Shared()
	case a.client.Proxy.Family == node.IPv6:
		return names.UnroutableIPv6
	default:
		return names.UnroutableIPv4
	}
}

// own lists the addresses of a service alone that the Envoy listens for. An address that another registry than
// the first has may be owned by another service.
func (a answering) own(s catalog.ServiceDefinition) (list []string) {
	foreign := s.ForeignIn(a.client.Proxy.Cluster)
	for address := range s.OwnAddressesIn(a.client.Proxy.Cluster) {
		ip, err := netip.ParseAddr(address)
		if err != nil || ip.IsUnspecified() || !a.client.Proxy.Family.Has(address) || foreign && a.taken(s, address) {
			continue
		}
		if s.StandingAt(a.client.Proxy.Cluster, address) == s.Standing || a.owns(s, address) || a.reached(s, address) {
			list = append(list, ip.Unmap().String())
		}
	}
	for address := range reach.Allotted(a.client, s) {
		if a.reached(s, address) {
			list = append(list, address)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// owns reports whether the service owns an address of its own at each of its ports.
func (a answering) owns(s catalog.ServiceDefinition, address string) bool {
	return !slices.ContainsFunc(s.Ports, func(p model.Port) bool {
		owner, ok := reach.CallableAt(a.client, a.ports[p.Number], address).Owner()
		return ok && owner.Key != s.Key
	})
}

// taken reports whether an address of a service in another cluster is that of somebody
// else in the client's, at one of the service's ports.
func (a answering) taken(s catalog.ServiceDefinition, address string) bool {
	for _, port := range s.Ports {
		if a.ports[port.Number].TakenIn(a.client.Proxy.Cluster, address, a.client.Viewer) {
			return true
		}
	}
	return false
}

// reached reports whether calls of a service reach it at an address that is not its own: because
// they name it, or because nobody else is called there. One port for which that does not hold is
// enough to say no: a call there would reach another service.
func (a answering) reached(s catalog.ServiceDefinition, address string) bool {
	some := false
	for _, port := range s.Ports {
		kind := reach.TrafficOf(port)
		if kind == reach.NotTCP || a.client.Proxy.Reserved(port.Number) {
			continue // nobody is called there
		}
		if !a.reachedAt(s, port, kind, address) {
			return false
		}
		some = true
	}
	return some
}

func (a answering) reachedAt(s catalog.ServiceDefinition, port model.Port, kind reach.Traffic, address string) bool {
	if s.ResolutionAt(port.Number) == model.ResolutionNone || !reach.HasCluster(s, port.Number) || reach.Follows(a.client.Proxy, s.Definition, port) || reach.StaysInCluster(a.client.Proxy, s.Definition, port) {
		return false
	}
	at, ip, cluster := a.destinations(address, port.Number), netip.MustParseAddr(address), names.Cluster(s.Key.Host, port.Number)
	switch kind {
	case reach.HTTP: // requests name the host
		return at.Routes == names.PortRoutes(port.Number)
	case reach.TLS:
		return names.IsSNI(s.Key.Host) && at.At(ip, s.Key.Host) == cluster
	case reach.Detected: // it is called in both ways
		return at.Routes != "" && at.At(ip, "") == cluster
	default:
		return at.At(ip, "") == cluster
	}
}

// destinations returns those of connections to an address: of the listener there, or else of the
// one that services share.
func (a answering) destinations(address string, number uint32) reach.Destinations {
	key := destination{address, number}
	at, known := a.reaches[key]
	if known {
		return at
	}
	shared := a.client.Proxy.Shared()
	if address == shared {
		rest, requests := withoutRequests(reach.Members(a.client, a.ports[number], shared), number)
		l := reach.LayoutOf(rest, number, true, a.client)
		if requests {
			l.Routes = names.PortRoutes(number)
		}
		at = l.Destinations()
	} else if members := slices.Collect(reach.Members(a.client, a.ports[number], address)); len(members) > 0 {
		at = reach.LayoutOf(members, number, false, a.client).Destinations()
	} else {
		at = a.destinations(shared, number)
	}
	a.reaches[key] = at
	return at
}

// withoutRequests leaves out the services of requests where all of them have these: to
// put thousands in order would say nothing else. That is so unless a server speaks first.
func withoutRequests(services iter.Seq[catalog.ServiceDefinition], number uint32) (rest []catalog.ServiceDefinition, requests bool) {
	for s := range services {
		switch port, _ := s.Port(number); {
		case reach.ServerFirst(port):
			return slices.Collect(services), false
		case reach.TrafficOf(port) == reach.HTTP:
			requests = true
		default:
			rest = append(rest, s)
		}
	}
	return rest, requests
}
