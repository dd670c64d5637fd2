package envoy

import (
	"iter"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// virtualOutbound is the listener that connections are redirected to. It hands them
// over to the listener of the address that they were meant for.
const virtualOutbound = "virtualOutbound"

// listenerNames yields the listeners of an Envoy that are not of one service port.
func listenerNames(w *World, v View) iter.Seq[string] {
	if v.proxy.role == edge {
		return edgeListenerNames(w.settings, v.proxy)
	}
	return func(yield func(string) bool) {
		if v.proxy.mode != none && !yield(virtualOutbound) || v.inbound.taken && !yield(virtualInbound) {
			return
		}
		for b := range v.inbound.binds.served() {
			if !yield(b.name()) {
				return
			}
		}
		if _, answers := findDNSListener(w, v); answers && !yield(dnsListenerName) {
			return
		}
		for index := range w.snapshot.Ports() {
			for _, address := range listenedAt(w, v, index) {
				if !v.inbound.binds.claim(address, index.Number) && !yield(socketName(address, index.Number)) {
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
	if name == virtualInbound {
		return findInboundListener(v)
	}
	if own, ok := findBoundListener(v, name); ok {
		return own, true
	}
	binds := v.inbound.binds
	v.inbound = inbound{} // the rest is the same for all workloads
	if name == virtualOutbound {
		v.single, v.proxy.cluster = false, ""
		return capture{proxySlot{ListenerType, name, v}}, v.proxy.mode != none
	}
	if name == dnsListenerName {
		return findDNSListener(w, v)
	}
	address, number, ok := parseSocketName(name)
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
	if to == clusterURL {
		return slices.Values([]string{blackHoleCluster, c.view.unknown()})
	}
	return nothing
}

// Encode implements [push.Subject].
func (c capture) Encode() push.Encoded {
	m := &listenerv3.Listener{
		Name:                c.name,
		Address:             socketAt(c.view.proxy.everywhere(), policy.OutboundPort),
		AdditionalAddresses: c.view.proxy.also(c.view.proxy.everywhere(), policy.OutboundPort),
		UseOriginalDst:      wrapperspb.Bool(true),
		TrafficDirection:    corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{
			{
				// A connection to this very port would be handed over to itself for ever.
				Name:             virtualOutbound + "-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(policy.OutboundPort)},
				Filters:          c.view.toTCP(blackHoleCluster),
			},
			{Name: virtualOutbound + "-catchall-tcp", Filters: c.view.toTCP(c.view.unknown())},
		},
	}
	if c.view.proxy.mode == tproxy {
		m.Transparent = wrapperspb.Bool(true)
	}
	c.view.logUnmatched(m)
	return encode(c.name, listenerURL, m)
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
	if l.routes == portRoutes(s.index.Number) && s.view.usesHosts(s.index) {
		l.routes = hostRoutes(s.index.Number)
	}
	return l
}

// Refers implements [push.Referrer].
func (s socket) Refers(to string) iter.Seq[string] {
	switch to {
	case routeURL:
		if l := s.layout(); l.routes != "" {
			return one(l.routes)
		}
	case virtualHostURL:
		if l := s.layout(); l.routes == hostRoutes(s.index.Number) {
			v := s.view
			v.proxy = proxy{domain: v.said().Domain, cluster: v.proxy.cluster} // as in the view of hosts
			return hostRoutesSubject{proxySlot{view: v}, s.index}.Refers(to)
		}
	case clusterURL:
		return s.layout().clusters(s.view.unknown())
	}
	return nothing
}

// Encode implements [push.Subject].
func (s socket) Encode() push.Encoded {
	return s.layout().encode(s.view, s.address, s.index.Number)
}

// encode writes the listener of an address and port.
func (l layout) encode(v View, address string, port uint32) push.Encoded {
	m := &listenerv3.Listener{
		Name:                socketName(address, port),
		Address:             socketAt(address, port),
		AdditionalAddresses: v.proxy.also(address, port),
		TrafficDirection:    corev3.TrafficDirection_OUTBOUND,
	}
	if v.proxy.mode != none {
		m.BindToPort = wrapperspb.Bool(false)
	}
	l.listener(m, v)
	v.logUnmatched(m)
	return encode(m.GetName(), listenerURL, m)
}

func socketAt(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
