package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
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
				if !yield(c.cluster) {
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
func (l edgeListener) chains() []chain {
	members := l.services.members(l.view, l.port)
	if l.port.Protocol == policy.EdgeTCP {
		if len(members) > 0 {
			return []chain{{cluster: members[0].cluster(), affinity: members[0].Traffic.Affinity}}
		}
		return []chain{{cluster: names.BlackHole}}
	}
	var list []chain
	taken := claims{}
	for _, m := range members {
		if name, ok := names.SNI(m.Key.Host); ok {
			taken.add(&list, chain{match: name, cluster: m.cluster(), affinity: m.Traffic.Affinity})
		}
	}
	return append(inOrder(list), chain{cluster: names.BlackHole})
}

// Encode implements [push.Subject].
func (l edgeListener) Encode() push.Encoded {
	p, s := l.view.proxy, l.view.settings.OrIstio()
	m := &wire.Edge{Name: l.name, Address: p.everywhere(), BothFamilies: p.alsoIPv6(p.everywhere()), Port: l.port, Defaults: s.Defaults}
	switch l.port.Protocol {
	case policy.EdgeHTTP:
		m.Routes = l.routes()
	case policy.EdgeAutoPassthrough:
	default:
		chains := l.chains()
		rest := len(chains) - 1
		m.BySNI, m.Rest = layout{}.targets(chains[:rest], s), targetOf(s, chains[rest].cluster, chains[rest].affinity)
	}
	return encode(l.name, wire.ListenerURL, m.Message())
}
