package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// edgeListener is the listener of a port of the edge.
type edgeListener struct {
	proxySlot
	port     *policy.EdgePort
	services *definitions // nil where the listener does not depend on them
	hosts    *definitions // nil where the listener does not lead to single hosts
}

// Refers implements [push.Referrer].
func (l edgeListener) Refers(to string) iter.Seq[string] {
	switch {
	case to == wire.RouteURL && l.port.Protocol == policy.EdgeHTTP:
		return one(l.routes())
	case to == wire.VirtualHostURL && l.hosts != nil:
		return l.hosts.edgeHostNames(l.view, l.port)
	case to == wire.ClusterURL && l.port.Protocol == policy.EdgeAutoPassthrough:
		return one(names.BlackHole)
	case to == wire.ClusterURL && l.port.Protocol != policy.EdgeHTTP:
		return func(yield func(string) bool) {
			for _, c := range l.chains() {
				if !yield(c.Cluster) {
					return
				}
			}
		}
	}
	return nothing
}

// routes is the route configuration of requests.
func (l edgeListener) routes() string {
	if l.view.single {
		return names.EdgeHostRoutes(l.port.Port())
	}
	return names.EdgeRoutes(l.port.Port())
}

// chains lead connections to services, and the last all others.
func (l edgeListener) chains() []reach.Chain {
	members := l.services.members(l.view, l.port)
	if l.port.Protocol == policy.EdgeTCP {
		if len(members) > 0 {
			return []reach.Chain{{Cluster: members[0].Cluster(), Affinity: members[0].Traffic.Affinity}}
		}
		return []reach.Chain{{Cluster: names.BlackHole}}
	}
	var list []reach.Chain
	taken := claims{}
	for _, m := range members {
		if name, ok := names.SNI(m.Key.Host); ok {
			taken.add(&list, reach.Chain{Match: name, Cluster: m.Cluster(), Affinity: m.Traffic.Affinity})
		}
	}
	return append(reach.InOrder(list), reach.Chain{Cluster: names.BlackHole})
}

// Encode implements [push.Subject].
func (l edgeListener) Encode() push.Encoded {
	p, s := l.view.proxy, l.view.settings.OrIstio()
	m := &wire.Edge{Name: l.name, Address: p.Everywhere(), BothFamilies: p.AlsoIPv6(p.Everywhere()), Port: l.port, Defaults: s.Defaults}
	switch l.port.Protocol {
	case policy.EdgeHTTP:
		m.Routes = l.routes()
	case policy.EdgeAutoPassthrough:
	default:
		chains := l.chains()
		rest := len(chains) - 1
		m.BySNI, m.Rest = targetsOf(chains[:rest], s), targetOf(s, chains[rest].Cluster, chains[rest].Affinity)
	}
	return encode(l.name, wire.ListenerURL, m.Message())
}
