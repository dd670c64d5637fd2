package envoy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

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

// An Envoy at the edge of the mesh listens on the configured ports, and routes to the services
// that it may see.

// definitions are all services of a snapshot without their endpoints. It stays the same
// pointer while none of them changes.
type definitions struct {
	byPort iter.Seq[*catalog.PortServices]
	names  *vhost.Lookups // nil if lookups are not answered
	web    *webServices   // nil if no port of the edge takes requests

	secured *securedServices // nil if no host has TLS
}

// after are the definitions after a change; they are the same unless it is of one of them.
func (d *definitions) after(now *catalog.Snapshot, c catalog.Change, s *policy.Prepared) *definitions {
	if d == nil {
		first := &definitions{byPort: now.Ports(), secured: securedIn(s, now)}
		if s.DNS != nil {
			first.names = vhost.LookupsOf(now, s.Domain)
		}
		if s.TakesRequestsAtEdge() {
			first.web = first.web.after(now, c)
		}
		return first
	}
	c.Services = redefined(c.Services)
	if len(c.Services) == 0 {
		return d
	}
	next := &definitions{byPort: now.Ports(), secured: d.secured.after(c, s)}
	if d.names != nil {
		next.names = d.names.After(c, s.Domain)
	}
	if d.web != nil {
		next.web = d.web.after(now, c)
	}
	return next
}

// redefined are the services of which more than endpoints changed.
func redefined(all map[catalog.ServiceKey]catalog.ServiceChange) map[catalog.ServiceKey]catalog.ServiceChange {
	some := map[catalog.ServiceKey]catalog.ServiceChange{}
	for key, service := range all {
		if service.Old == nil || service.New == nil || service.Old.Definition != service.New.Definition {
			some[key] = service
		}
	}
	return some
}

// members lists the exposed services that a view of the edge leads to from a port, owners
// first: owners of names, or of the port if only the port identifies the service. A service is
// called at its port of the same number if that fits the protocol of the edge, else at the
// first port that does.
func (d *definitions) members(v View, p *policy.EdgePort) []reach.EdgeMember {
	if d == nil {
		return nil
	}
	found := map[catalog.ServiceKey]reach.EdgeMember{}
	for index := range d.byPort {
		for s := range index.Visible(v.viewer()) {
			if !p.Exposes(s.Key.Host) {
				continue
			}
			port, _ := s.Port(index.Number)
			place, ok := reach.EdgeTakes(p, port)
			// With ResolutionNone the original destination would be the edge itself. Services that
			// are local to their cluster are not exposed.
			if !ok || s.ResolutionAt(index.Number) == model.ResolutionNone || s.Traffic.ClusterLocal || !reach.HasCluster(s, index.Number) {
				continue
			}
			if best, other := found[s.Key]; !other || place < best.Place {
				found[s.Key] = reach.EdgeMember{ServiceDefinition: s, At: index.Number, Place: place}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b reach.EdgeMember) int {
		return reach.EdgeAsks(p).Owner(v.Namespace, a.ServiceDefinition, b.ServiceDefinition)
	})
}

// edgeListenerNames yields the listeners of Envoys at the edge, and edgeRouteNames
// their route configurations.
func edgeListenerNames(s *policy.Prepared, p node.Proxy) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, port := range s.Edge {
			if p.Opens(port.Port()) && !yield(names.Socket(p.Everywhere(), port.Port())) {
				return
			}
		}
	}
}

func edgeRouteNames(s *policy.Prepared, single bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, port := range s.Edge {
			if port.Protocol == policy.EdgeHTTP && (!yield(names.EdgeRoutes(port.Port())) || single && !yield(names.EdgeHostRoutes(port.Port()))) {
				return
			}
		}
	}
}

// edgeNames are the resources of the edge that any service may be part of.
func edgeNames(s *policy.Prepared) (list []sharedName) {
	for _, port := range s.Edge {
		switch port.Protocol {
		case policy.EdgeHTTP:
			list = append(list, sharedName{RouteType, names.EdgeRoutes(port.Port())})
			continue
		case policy.EdgeAutoPassthrough: // of no service
			continue
		}
		for _, address := range []string{names.AnyIPv4, names.AnyIPv6} {
			list = append(list, sharedName{ListenerType, names.Socket(address, port.Port())})
		}
	}
	return list
}

func findEdgeListener(w *state, v View, name string) (world.Subject, bool) {
	address, number, ok := names.ParseSocket(name)
	if !ok || address != v.proxy.Everywhere() {
		return nil, false
	}
	port, ok := w.settings.EdgePort(number)
	if !ok || !v.proxy.Opens(number) {
		return nil, false
	}
	v.single = v.single && port.Protocol == policy.EdgeHTTP && w.definitions != nil && w.definitions.web.areMany(w.settings)
	l := edgeListener{proxySlot{ListenerType, name, v}, port, nil, nil}
	if v.single {
		l.hosts = w.definitions
	}
	if port.Protocol == policy.EdgeTLS || port.Protocol == policy.EdgeTCP {
		l.services = w.definitions
	}
	return l, true
}

func findEdgeRoutes(w *state, v View, name string) (world.Subject, bool) {
	if hosts, ok := findEdgeHostRoutes(w, v, name); ok {
		return hosts, true
	}
	v.single = false // the rest is the same for all
	number, ok := names.ParseEdgeRoutes(name)
	if !ok {
		return nil, false
	}
	port, ok := w.settings.EdgePort(number)
	if !ok || port.Protocol != policy.EdgeHTTP {
		return nil, false
	}
	return edgeRoutes{proxySlot{RouteType, name, v}, port, w.definitions}, true
}

// edgeListener is the listener of a port of the edge.
type edgeListener struct {
	proxySlot
	port     *policy.EdgePort
	services *definitions // nil where the listener does not depend on them
	hosts    *definitions // nil where the listener does not lead to single hosts
}

// Refers implements [world.Referrer].
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
	for _, m := range members {
		if names.IsSNI(m.Key.Host) {
			list = append(list, reach.Chain{Match: m.Key.Host, Cluster: m.Cluster(), Affinity: m.Traffic.Affinity})
		}
	}
	return append(reach.InOrder(list), reach.Chain{Cluster: names.BlackHole})
}

// Encode implements [world.Subject].
func (l edgeListener) Encode() world.Encoded {
	p, s := l.view.proxy, l.view.settings.OrIstio()
	m := &wire.Edge{Name: l.name, Address: p.Everywhere(), BothFamilies: p.AlsoIPv6(p.Everywhere()), Port: l.port, Settings: s}
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

// edgeRoutes is the route configuration of a port of the edge. A request for a host that
// it does not have is answered 404 by Envoy.
type edgeRoutes struct {
	proxySlot
	port     *policy.EdgePort
	services *definitions
}

// Refers implements [world.Referrer].
func (r edgeRoutes) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for _, m := range r.services.members(r.view, r.port) {
			if !yield(m.Cluster()) {
				return
			}
		}
	}
}

// Encode implements [world.Subject].
func (r edgeRoutes) Encode() world.Encoded {
	m := wire.Routes(r.name, false)
	for _, member := range r.services.members(r.view, r.port) {
		m.VirtualHosts = append(m.VirtualHosts, r.virtualHost(member))
	}
	slices.SortFunc(m.GetVirtualHosts(), func(a, b *routev3.VirtualHost) int { return strings.Compare(a.GetName(), b.GetName()) })
	return encode(m.GetName(), wire.RouteURL, m)
}

// virtualHost routes requests to a service. Short names and addresses are used only inside of the
// mesh.
func (r edgeRoutes) virtualHost(m reach.EdgeMember) *routev3.VirtualHost {
	host := m.Key.Host
	return wire.VirtualHost(names.Listener(host, r.port.Port()), edgeDomains(host), wire.Target{Cluster: m.Cluster(), Policy: r.view.settings.OrIstio().For(host, m.Traffic.Affinity)})
}
