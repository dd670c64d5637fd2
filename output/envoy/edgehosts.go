package envoy

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An edge takes hosts one by one as sidecars do, where it leads requests to many services:
// the route configuration http.PORT.hosts, and a resource http.PORT.hosts/HOST for each.

// webServices are the services that edges may lead requests to. They are immutable, and made
// from those before.
type webServices struct {
	now   *catalog.Snapshot // the first one with these services
	count int
	was   int // how many there were before the change
}

// after are the services after a change; now has all of them.
func (w *webServices) after(now *catalog.Snapshot, c catalog.Change) *webServices {
	if w == nil {
		first := &webServices{now: now}
		for s := range now.Services() {
			first.enter(s, +1)
		}
		first.was = first.count
		return first
	}
	next := &webServices{now, w.count, w.count}
	for _, service := range c.Services {
		next.enter(service.Old, -1)
		next.enter(service.New, +1)
	}
	return next
}

// enter counts a service, if there is one.
func (w *webServices) enter(s *catalog.Service, by int) {
	if s != nil && isWeb(s.ServiceDefinition) {
		w.count += by
	}
}

// isWeb reports whether a port of an edge that takes requests may lead to a service.
func isWeb(s catalog.ServiceDefinition) bool {
	_, ok := reach.EdgeCalls(&policy.EdgePort{Protocol: policy.EdgeHTTP}, s)
	return ok
}

// areMany reports whether edges lead to the single hosts of so many services.
func (w *webServices) areMany(s *policy.Prepared) bool { return w.count >= s.LargePort }

// edgeHostPort returns the port of the edge of such a route configuration.
func edgeHostPort(s *policy.Prepared, routes string) (*policy.EdgePort, bool) {
	whole, single := strings.CutSuffix(routes, names.HostsSuffix)
	number, ok := names.ParseEdgeRoutes(whole)
	if !ok || !single {
		return nil, false
	}
	port, ok := s.EdgePort(number)
	return port, ok && port.Protocol == policy.EdgeHTTP
}

// edgeHost is the virtual host of a service at a port of the edge, as some viewers see it.
type edgeHost struct {
	edgeHostSlot
	member reach.EdgeMember
}

// edgeHostSlot tells it from every other.
type edgeHostSlot struct {
	name     string
	key      catalog.ServiceKey
	settings *policy.Prepared
}

// Slot implements [world.Subject].
func (h edgeHost) Slot() any { return h.edgeHostSlot }

// Refers implements [world.Referrer].
func (h edgeHost) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return one(h.member.Cluster())
	}
	return nothing
}

// Encode implements [world.Subject]. The virtual host has the name of the resource: otherwise
// Envoy ignores its removal.
func (h edgeHost) Encode() world.Encoded {
	p := h.settings.OrIstio().For(h.key.Host, h.member.Traffic.Affinity)
	return encode(h.name, wire.VirtualHostURL, wire.VirtualHost(h.name, edgeDomains(h.key.Host), wire.Target{Cluster: h.member.Cluster(), Policy: p}))
}

// edgeHostOf returns the virtual host of a service that a view sees; ok is false if the port does
// not lead to it.
func edgeHostOf(v View, p *policy.EdgePort, s catalog.ServiceDefinition) (h edgeHost, ok bool) {
	member, ok := reach.EdgeMemberOf(p, s)
	if !ok {
		return h, false
	}
	return edgeHost{edgeHostSlot{names.EdgeVirtualHost(p.Port(), s.Key.Host), s.Key, v.settings}, member}, true
}

// edgeDomains are the authorities by which a host is called from outside of the mesh.
func edgeDomains(host string) []string { return []string{host, host + "."} }

// findEdgeHost finds a single host of the edge by its name.
func findEdgeHost(w *state, v View, name string) (world.Subject, bool) {
	routes, host, _ := strings.Cut(name, "/")
	p, ok := edgeHostPort(w.settings, routes)
	if !ok || host == "" || !v.single || w.definitions == nil {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), host)
	if !ok {
		return nil, false
	}
	h, ok := edgeHostOf(v, p, s.ServiceDefinition)
	if !ok {
		return nil, false
	}
	return h, true
}

// edgeHostNames yields the single hosts of some ports of the edge.
func (d *definitions) edgeHostNames(v View, ports ...*policy.EdgePort) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !v.single || d == nil || d.web == nil {
			return
		}
		for _, p := range ports {
			if p.Protocol != policy.EdgeHTTP {
				continue
			}
			for s := range d.web.now.Visible(v.viewer()) {
				if h, ok := edgeHostOf(v, p, s.ServiceDefinition); ok && !yield(h.name) {
					return
				}
			}
		}
	}
}

// edgeHostRoutes is the route configuration of a port of the edge that takes single hosts.
// It brings these. A request for any other host is answered 404 by Envoy.
type edgeHostRoutes struct {
	proxySlot
	port     *policy.EdgePort
	services *definitions
}

// Refers implements [world.Referrer].
func (r edgeHostRoutes) Refers(to string) iter.Seq[string] {
	if to != wire.VirtualHostURL {
		return nothing
	}
	return r.services.edgeHostNames(r.view, r.port)
}

// Encode implements [world.Subject].
func (r edgeHostRoutes) Encode() world.Encoded {
	return encode(r.name, wire.RouteURL, wire.Routes(r.name, true))
}

// findEdgeHostRoutes returns it for each port that takes requests, however few services there
// are: Envoy goes on to use it while it drains a listener.
func findEdgeHostRoutes(w *state, v View, name string) (world.Subject, bool) {
	p, ok := edgeHostPort(w.settings, name)
	if !ok || !v.single || w.definitions == nil {
		return nil, false
	}
	return edgeHostRoutes{proxySlot{RouteType, name, v}, p, w.definitions}, true
}

// edgeHostChanges are the single hosts of the edge that a change may alter, and the listeners
// that may lead to them from now on, or not any longer.
func edgeHostChanges(s *policy.Prepared, d *definitions, c catalog.Change) (list []world.Changed) {
	if d == nil || d.web == nil {
		return nil
	}
	noted := audiences{}
	for key, service := range redefined(c.Services) {
		namespaces, seen := reach.Audience(service.Old, service.New)
		if !seen {
			continue
		}
		for _, p := range s.Edge {
			if p.Protocol != policy.EdgeHTTP {
				continue
			}
			noted.add(sharedName{RouteType, names.EdgeHostRoutes(p.Port())}, namespaces)
			noted.add(sharedName{VirtualHostType, names.EdgeVirtualHost(p.Port(), key.Host)}, namespaces)
		}
	}
	if (d.web.was >= s.LargePort) != d.web.areMany(s) {
		for _, p := range s.Edge {
			if p.Protocol == policy.EdgeHTTP {
				noted.add(sharedName{ListenerType, names.Socket(names.AnyIPv4, p.Port())}, nil)
				noted.add(sharedName{ListenerType, names.Socket(names.AnyIPv6, p.Port())}, nil)
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(noted), func(a, b sharedName) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.name, b.name))
	}) {
		// As for the single hosts of a port: see appendShared.
		list = append(list, world.Changed{Row: name.row, Name: name.name, Audience: noted[name].list(), Revoked: name.row == VirtualHostType})
	}
	return list
}
