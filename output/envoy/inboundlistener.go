package envoy

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// findInboundListener returns the listener of an Envoy's own workload.
func findInboundListener(v View) (push.Subject, bool) {
	own := node.Proxy{Role: v.proxy.Role, Mode: v.proxy.Mode, Family: v.proxy.Family}
	return inboundListener{View{settings: v.settings, proxy: own, inbound: v.inbound}}, v.inbound.taken
}

// inboundListener is [virtualInbound]. It says nothing of services, and of the ports of
// the workload only which there are and what they carry: it hardly ever changes.
type inboundListener struct {
	view View // without what does not matter here
}

// Slot implements [push.Subject].
func (l inboundListener) Slot() any { return l }

// Refers implements [push.Referrer].
func (l inboundListener) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	list := []string{names.BlackHole, names.InboundPassthrough}
	for number := range l.view.inbound.ports.all() {
		list = append(list, names.InboundCluster(number))
	}
	return slices.Values(list)
}

// Encode implements [push.Subject].
func (l inboundListener) Encode() push.Encoded {
	p, s := l.view.proxy, l.view.settings.OrIstio()
	var ports []wire.InboundPort
	for number, kind := range l.view.inbound.ports.all() {
		ports = append(ports, inboundPort(number, kind))
	}
	return encode(names.VirtualInbound, wire.ListenerURL,
		wire.VirtualInbound(p.Everywhere(), p.AlsoIPv6(p.Everywhere()), p.Mode == node.TProxy, ports, reach.ServerFirstPorts[:], s.Defaults))
}

func inboundPort(number uint32, kind reach.Traffic) wire.InboundPort {
	p := wire.InboundPort{Number: number}
	switch kind {
	case reach.HTTP:
		p.Carries = wire.Requests
	case reach.Detected:
		p.Carries = wire.Either
	default: // connections
	}
	return p
}
