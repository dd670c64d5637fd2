package envoy

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// listenerNames yields the listeners of an Envoy that are not of one service port.
func listenerNames(w *World, v View) iter.Seq[string] {
	if v.proxy.role == edge {
		return edgeListenerNames(w.settings, v.proxy)
	}
	return func(yield func(string) bool) {
		if v.proxy.mode != none && !yield(names.VirtualOutbound) || v.inbound.taken && !yield(names.VirtualInbound) {
			return
		}
		for b := range v.inbound.binds.served() {
			if !yield(b.name()) {
				return
			}
		}
		if _, answers := findDNSListener(w, v); answers && !yield(names.DNSListener) {
			return
		}
		for index := range w.snapshot.Ports() {
			for _, address := range listenedAt(w, v, index) {
				if !v.inbound.binds.claim(address, index.Number) && !yield(names.Socket(address, index.Number)) {
					return
				}
			}
		}
	}
}

// listenedAt lists the addresses at which a port has listeners.
func listenedAt(w *World, v View, index *catalog.PortServices) []string {
	var own, pods []string
	others := map[string]struct{}{} // addresses that a listener may be taken from
	for s := range index.Visible(v.viewer()) {
		if !hasCluster(s, index.Number) {
			continue
		}
		own = slices.AppendSeq(own, v.proxy.listensAt(s, index))
		pods = slices.AppendSeq(pods, podAddresses(w, v, s, index))
		if port, _ := s.Port(index.Number); trafficOf(port) == httpOnly || s.ForeignIn(v.proxy.cluster) {
			for address := range s.OwnAddressesIn(v.proxy.cluster) {
				others[address] = struct{}{}
			}
		}
	}
	slices.Sort(own)
	own = slices.DeleteFunc(slices.Compact(own), func(address string) bool {
		_, doubtful := others[address]
		return doubtful && len(askingAt(v, index, address).connections()) == 0
	})
	own = slices.Concat(own, slices.DeleteFunc(pods, func(address string) bool { return index.TakenIn(v.proxy.cluster, address, v.viewer()) }))
	slices.Sort(own)
	return slices.Compact(own)
}

// findListener returns one of them.
func findListener(w *World, v View, name string) (push.Subject, bool) {
	if v.proxy.role != sidecar {
		return findEdgeListener(w, v, name)
	}
	if name == names.VirtualInbound {
		return findInboundListener(v)
	}
	if own, ok := findBoundListener(v, name); ok {
		return own, true
	}
	binds := v.inbound.binds
	v.inbound = inbound{} // the rest is the same for all workloads
	if name == names.VirtualOutbound {
		v.single, v.proxy.cluster = false, ""
		return capture{proxySlot{ListenerType, name, v}}, v.proxy.mode != none
	}
	if name == names.DNSListener {
		return findDNSListener(w, v)
	}
	address, number, ok := names.ParseSocket(name)
	if !ok || binds.claim(address, number) {
		return nil, false
	}
	index := w.snapshot.Port(number)
	if address != v.proxy.shared() {
		if services := slices.Collect(members(v, index, address)); len(services) > 0 {
			return addressListenerOf(v, address, number, services), true
		}
		return findPodListener(w, v, address, number)
	}
	v.single = v.usesHosts(index)
	for range members(v, index, address) {
		v.proxy.outbound = push.AllPorts() // the other ports of the node are not part of this one
		return socket{proxySlot{ListenerType, name, v}, address, index}, true
	}
	return findPodListener(w, v, address, number)
}

// proxySlot tells a resource of an Envoy's own from every other.
type proxySlot struct {
	row  push.Row
	name string
	view View
}

// Slot implements [push.Subject].
func (s proxySlot) Slot() any { return s }

// capture is [virtualOutbound].
type capture struct{ proxySlot }

// Refers implements [push.Referrer].
func (c capture) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return slices.Values([]string{names.BlackHole, unknownCluster(c.view.settings.OrIstio().RegistryOnly)})
	}
	return nothing
}

// Encode implements [push.Subject].
func (c capture) Encode() push.Encoded {
	p, s := c.view.proxy, c.view.settings.OrIstio()
	return encode(c.name, wire.ListenerURL, wire.VirtualOutbound(p.everywhere(), p.alsoIPv6(p.everywhere()), p.mode == tproxy, unknownCluster(s.RegistryOnly), s.Defaults))
}

// socket is the listener of a port for all addresses without one of their own.
type socket struct {
	proxySlot
	address string
	index   *catalog.PortServices
}

func (s socket) layout() layout {
	services := slices.Collect(members(s.view, s.index, s.address))
	l := layoutOf(services, s.index.Number, true, s.view)
	if l.routes == names.PortRoutes(s.index.Number) && s.view.usesHosts(s.index) {
		l.routes = names.HostRoutes(s.index.Number)
	}
	return l
}

// Refers implements [push.Referrer].
func (s socket) Refers(to string) iter.Seq[string] {
	switch to {
	case wire.RouteURL:
		if l := s.layout(); l.routes != "" {
			return one(l.routes)
		}
	case wire.VirtualHostURL:
		if l := s.layout(); l.routes == names.HostRoutes(s.index.Number) {
			v := s.view
			v.proxy = proxy{domain: v.settings.OrIstio().Domain, cluster: v.proxy.cluster} // as in the view of hosts
			return hostRoutesSubject{proxySlot{view: v}, s.index}.Refers(to)
		}
	case wire.ClusterURL:
		return s.layout().clusters(unknownCluster(s.view.settings.OrIstio().RegistryOnly))
	}
	return nothing
}

// Encode implements [push.Subject].
func (s socket) Encode() push.Encoded {
	return s.layout().encode(s.view.proxy, s.view.settings.OrIstio(), s.address, s.index.Number)
}

// encode encodes the listener of an address and port.
func (l layout) encode(p proxy, s *policy.Prepared, address string, port uint32) push.Encoded {
	o := &wire.Outbound{
		Name: names.Socket(address, port), Address: address, Port: port, BothFamilies: p.alsoIPv6(address), Bound: p.mode == none,
		Routes: l.routes, BySNI: l.targets(l.bySNI, s), ByBlock: l.targets(l.byBlock, s),
		Rest: targetOf(s, l.other, l.affinity), Defaults: s.Defaults,
	}
	if l.other == "" {
		o.Passthrough, o.Rest = true, targetOf(s, unknownCluster(s.RegistryOnly), "")
	}
	return encode(o.Name, wire.ListenerURL, o.Message())
}

// targets returns chains with the policies of their hosts, in order of their matches.
func (layout) targets(chains []chain, s *policy.Prepared) (list []wire.Chain) {
	for _, c := range inOrder(chains) {
		list = append(list, wire.Chain{Match: c.match, Target: targetOf(s, c.cluster, c.affinity), Crowded: c.crowded})
	}
	return list
}

// targetOf returns a cluster with the policy of its host.
func targetOf(s *policy.Prepared, cluster string, affinity model.Affinity) wire.Target {
	host, _, _ := names.ParseCluster(cluster)
	return wire.Target{Cluster: cluster, Policy: s.For(host, affinity)}
}
