package envoy

import (
	"iter"
	"slices"
	"strconv"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// listenerNames yields the listeners of an Envoy that are not of one service port.
func listenerNames(w *state, v View) iter.Seq[string] {
	if v.proxy.Role == node.Edge {
		return edgeListenerNames(w.settings, v.proxy)
	}
	return func(yield func(string) bool) {
		if v.proxy.Mode != node.None && !yield(names.VirtualOutbound) || v.inbound.taken && !yield(names.VirtualInbound) {
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
			for _, address := range listenedAt(v, index) {
				if !v.inbound.binds.occupies(address, index.Number) && !yield(names.Socket(address, index.Number)) {
					return
				}
			}
			for _, at := range reach.ChosenListeners(v.client(), w.snapshot, index) {
				if !v.inbound.binds.occupies(at.Address, at.Port) && !yield(names.Socket(at.Address, at.Port)) {
					return
				}
			}
		}
	}
}

// listenedAt lists the addresses at which a port has listeners, but for those of instances.
func listenedAt(v View, index *catalog.PortServices) []string {
	var own []string
	others := map[string]struct{}{} // addresses that a listener may be taken from
	for s := range index.Visible(v.viewer()) {
		if !reach.HasCluster(s, index.Number) {
			continue
		}
		own = slices.AppendSeq(own, reach.ListensAt(v.client(), s, index))
		if port, _ := s.Port(index.Number); reach.TrafficOf(port) == reach.HTTP || s.ForeignIn(v.proxy.Cluster) {
			for address := range s.OwnAddressesIn(v.proxy.Cluster) {
				others[address] = struct{}{}
			}
		}
	}
	slices.Sort(own)
	return slices.DeleteFunc(slices.Compact(own), func(address string) bool {
		_, doubtful := others[address]
		return doubtful && len(reach.CallableAt(v.client(), index, address).Listened()) == 0
	})
}

// findListener returns one of them.
func findListener(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role != node.Sidecar {
		return findEdgeListener(w, v, name)
	}
	if name == names.VirtualInbound {
		return findInboundListener(v)
	}
	if own, ok := findBindListener(v, name); ok {
		return own, true
	}
	binds := v.inbound.binds
	v.inbound = inbound{} // the rest is the same for all workloads
	if name == names.VirtualOutbound {
		v.single, v.proxy.Cluster = false, ""
		return capture{proxySlot{ListenerType, name, v}}, v.proxy.Mode != node.None
	}
	if name == names.DNSListener {
		return findDNSListener(w, v)
	}
	address, number, ok := names.ParseSocket(name)
	if !ok || binds.occupies(address, number) {
		return nil, false
	}
	index := w.snapshot.Port(number)
	if address != v.proxy.Shared() {
		if services := slices.Collect(reach.Members(v.client(), index, address)); len(services) > 0 {
			return addressListenerOf(v, address, number, reach.LayoutOf(services, number, false, v.client())), true
		}
		return findChosenListener(w, v, address, number)
	}
	v.single = usesHosts(v, index)
	for range reach.Members(v.client(), index, address) {
		v.proxy.Outbound = world.AllPorts() // the other ports of the node are not part of this one
		return socket{proxySlot{ListenerType, name, v}, address, index}, true
	}
	return findChosenListener(w, v, address, number)
}

// proxySlot tells a resource of an Envoy's own from every other.
type proxySlot struct {
	row  world.Row
	name string
	view View
}

// Slot implements [world.Subject].
func (s proxySlot) Slot() any { return s }

// capture is [virtualOutbound].
type capture struct{ proxySlot }

// Refers implements [world.Referrer].
func (c capture) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return slices.Values([]string{names.BlackHole, unknownCluster(c.view.settings.OrIstio().RegistryOnly)})
	}
	return nothing
}

// Encode implements [world.Subject].
func (c capture) Encode() world.Encoded {
	p, s := c.view.proxy, c.view.settings.OrIstio()
	return encode(c.name, wire.ListenerURL, wire.VirtualOutbound(p.Everywhere(), p.AlsoIPv6(p.Everywhere()), p.Mode == node.TProxy, unknownCluster(s.RegistryOnly), s))
}

// socket is the listener of a port for all addresses without one of their own.
type socket struct {
	proxySlot
	address string
	index   *catalog.PortServices
}

func (s socket) layout() reach.Layout {
	services := slices.Collect(reach.Members(s.view.client(), s.index, s.address))
	l := reach.LayoutOf(services, s.index.Number, true, s.view.client())
	if l.Routes == names.PortRoutes(s.index.Number) && usesHosts(s.view, s.index) {
		l.Routes = names.HostRoutes(s.index.Number)
	}
	return l
}

// Refers implements [world.Referrer].
func (s socket) Refers(to string) iter.Seq[string] {
	switch to {
	case wire.RouteURL:
		if l := s.layout(); l.Routes != "" {
			return one(l.Routes)
		}
	case wire.VirtualHostURL:
		if l := s.layout(); l.Routes == names.HostRoutes(s.index.Number) {
			v := s.view
			v.proxy = node.Proxy{Domain: v.settings.OrIstio().Domain, Cluster: v.proxy.Cluster} // as in the view of hosts
			return hostRoutesSubject{proxySlot{view: v}, s.index}.Refers(to)
		}
	case wire.ClusterURL:
		return s.layout().Clusters(unknownCluster(s.view.settings.OrIstio().RegistryOnly))
	}
	return nothing
}

// Encode implements [world.Subject].
func (s socket) Encode() world.Encoded {
	return encodeLayout(s.layout(), s.view.proxy, s.view.settings.OrIstio(), s.address, s.index.Number)
}

// targetOf returns a cluster with the policy of its host.
func targetOf(s *policy.Prepared, cluster string, affinity model.Affinity) wire.Target {
	host, _, _ := names.ParseCluster(cluster)
	return wire.Target{Cluster: cluster, Policy: s.For(host, affinity)}
}

// encode encodes the listener of an address and port.
func encodeLayout(l reach.Layout, p node.Proxy, s *policy.Prepared, address string, port uint32) world.Encoded {
	o := &wire.Outbound{
		Name: names.Socket(address, port), Address: address, Port: port, BothFamilies: p.AlsoIPv6(address), Bound: p.Mode == node.None,
		Routes: l.Routes, BySNI: targetsOf(l.BySNI, s), ByBlock: targetsOf(l.ByBlock, s),
		Rest: targetOf(s, l.Other, l.Affinity), Settings: s,
	}
	if l.Other == "" {
		o.Passthrough, o.Rest = true, targetOf(s, unknownCluster(s.RegistryOnly), "")
	}
	return encode(o.Name, wire.ListenerURL, o.Message())
}

// targets returns chains with the policies of their hosts, in order of their matches.
func targetsOf(chains []reach.Chain, s *policy.Prepared) (list []wire.Chain) {
	for _, c := range reach.InOrder(chains) {
		list = append(list, wire.Chain{Match: c.Match, Target: targetOf(s, c.Cluster, c.Affinity), Crowded: c.Crowded})
	}
	return list
}

// addressListener is the listener of an address and port. Its content identifies it, and not
// the view: all views with the same content share it.
type addressListener struct {
	address  string
	number   uint32
	mode     node.Interception
	settings *policy.Prepared // nil without settings
	layoutKey
}

// layoutKey is a layout as a value that can be compared.
type layoutKey struct {
	routes   string
	other    string
	affinity model.Affinity
	chains   string // with their match, as writeChains writes them
}

func addressListenerOf(v View, address string, number uint32, l reach.Layout) addressListener {
	return addressListener{address, number, v.proxy.Mode, v.settings, layoutKey{l.Routes, l.Other, l.Affinity, writeChains(l)}}
}

// Slot implements [world.Subject].
func (a addressListener) Slot() any { return a }

// Refers implements [world.Referrer].
func (a addressListener) Refers(to string) iter.Seq[string] {
	switch {
	case to == wire.ClusterURL:
		return a.layout().Clusters(unknownCluster(a.settings.OrIstio().RegistryOnly))
	case to == wire.RouteURL && a.routes != "":
		return one(a.routes)
	default:
		return nothing
	}
}

// Encode implements [world.Subject].
func (a addressListener) Encode() world.Encoded {
	return encodeLayout(a.layout(), node.Proxy{Role: node.Sidecar, Mode: a.mode}, a.settings.OrIstio(), a.address, a.number)
}

// layout is the layout that the key was made of.
func (k layoutKey) layout() reach.Layout {
	l := reach.Layout{Routes: k.routes, Other: k.other, Affinity: k.affinity}
	for rest := k.chains; rest != ""; {
		var fields [3]string
		for i := range fields {
			quoted, _ := strconv.QuotedPrefix(rest)
			rest = rest[len(quoted):]
			fields[i], _ = strconv.Unquote(quoted)
		}
		l.BySNI = append(l.BySNI, reach.Chain{Match: fields[0], Cluster: fields[1], Affinity: model.Affinity(fields[2])})
	}
	return l
}

// writeChains writes the chains of a layout in their order, as quoted texts. The listener of
// an address has none for blocks of addresses.
func writeChains(l reach.Layout) string {
	var b []byte
	for _, c := range reach.InOrder(l.BySNI) {
		b = strconv.AppendQuote(b, c.Match)
		b = strconv.AppendQuote(b, c.Cluster)
		b = strconv.AppendQuote(b, string(c.Affinity))
	}
	return string(b)
}
