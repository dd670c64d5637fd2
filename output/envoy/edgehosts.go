package envoy

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An edge takes hosts one by one as sidecars do, where it leads requests to many services:
// the route configuration http.PORT.hosts, and a resource http.PORT.hosts/HOST for each.

// webServices are the services that edges may lead requests to, by host without case. They
// are immutable, and made from those before.
type webServices struct {
	now *catalog.Snapshot // the first one with these services
	all immutable.Map[foldedKey, catalog.ServiceDefinition]
	was int // how many there were before the change
}

// foldedKey identifies services with hosts that differ only in case.
type foldedKey struct {
	fold string
	catalog.ServiceKey
}

// after are the services after a change; now has all of them.
func (w *webServices) after(now *catalog.Snapshot, c catalog.Change) *webServices {
	if w == nil {
		all := immutable.New[foldedKey, catalog.ServiceDefinition](func(a, b foldedKey) int {
			return cmp.Or(strings.Compare(a.fold, b.fold), catalog.ServiceKey.Compare(a.ServiceKey, b.ServiceKey))
		}).Edit()
		for s := range now.Services() {
			if isWeb(s.ServiceDefinition) {
				all.Set(foldedKey{names.Fold(s.Key.Host), s.Key}, s.ServiceDefinition)
			}
		}
		first := &webServices{now: now, all: all.Map()}
		first.was = first.all.Len()
		return first
	}
	all := w.all.Edit()
	for key, service := range c.Services {
		at := foldedKey{names.Fold(key.Host), key}
		if service.New == nil || !isWeb(service.New.ServiceDefinition) {
			all.Delete(at)
		} else {
			all.Set(at, service.New.ServiceDefinition)
		}
	}
	return &webServices{now, all.Map(), w.all.Len()}
}

// isWeb reports whether a port of an edge that takes requests may lead to a service.
func isWeb(s catalog.ServiceDefinition) bool {
	_, ok := reach.EdgeCalls(&policy.EdgePort{Protocol: policy.EdgeHTTP}, s)
	return ok
}

// alike yields the services of a host, and those with hosts that differ from it only in case.
func (w *webServices) alike(host string) iter.Seq[catalog.ServiceDefinition] {
	fold := names.Fold(host)
	return func(yield func(catalog.ServiceDefinition) bool) {
		for key, s := range w.all.From(foldedKey{fold: fold}) {
			if key.fold != fold || !yield(s) {
				return
			}
		}
	}
}

// areMany reports whether edges lead to the single hosts of so many services.
func (w *webServices) areMany(s *policy.Prepared) bool { return w.all.Len() >= s.LargePort }

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
	view   View // of which the settings count
}

// edgeHostSlot tells it from every other.
type edgeHostSlot struct {
	name     string
	key      catalog.ServiceKey
	settings *policy.Prepared
	domains  string
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
	p := h.view.settings.OrIstio().For(h.member.Key.Host, h.member.Traffic.Affinity)
	return encode(h.name, wire.VirtualHostURL, wire.VirtualHost(h.name, strings.Split(h.domains, "\n"), wire.Target{Cluster: h.member.Cluster(), Policy: p}))
}

// hostOf returns the virtual host of a service that a view sees; ok is false if there is
// none, or if others own its domains.
func (w *webServices) hostOf(v View, p *policy.EdgePort, s catalog.ServiceDefinition) (h edgeHost, ok bool) {
	member, ok := reach.EdgeMemberOf(p, s)
	if !ok {
		return h, false
	}
	taken := takenMatches{}
	for other := range w.alike(s.Key.Host) {
		if other.Key == s.Key || !p.Exposes(other.Key.Host) || catalog.Name.Owner(v.Namespace, other, s) > 0 {
			continue
		}
		if seen, found := w.now.Resolve(v.viewer(), other.Key.Host); !found || seen.Key != other.Key {
			continue
		}
		for _, domain := range edgeDomains(other.Key.Host) {
			taken[strings.ToLower(domain)] = struct{}{}
		}
	}
	domains := taken.takeFree(edgeDomains(s.Key.Host))
	if len(domains) == 0 {
		return h, false
	}
	slot := edgeHostSlot{names.EdgeVirtualHost(p.Port(), s.Key.Host), s.Key, v.settings, strings.Join(domains, "\n")}
	return edgeHost{slot, member, View{settings: v.settings}}, true
}

// edgeDomains are the authorities by which a host is called from outside of the mesh.
func edgeDomains(host string) []string { return []string{host, strings.TrimSuffix(host, ".") + "."} }

// takeFree lists the domains that are not taken yet, each once, and takes them.
func (taken takenMatches) takeFree(domains []string) (list []string) {
	for _, domain := range domains {
		key := strings.ToLower(domain)
		if _, other := taken[key]; !other {
			taken[key] = struct{}{}
			list = append(list, domain)
		}
	}
	return list
}

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
	h, ok := w.definitions.web.hostOf(v, p, s.ServiceDefinition)
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
				if h, ok := d.web.hostOf(v, p, s.ServiceDefinition); ok && !yield(h.name) {
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
			for other := range d.web.alike(key.Host) {
				noted.add(sharedName{VirtualHostType, names.EdgeVirtualHost(p.Port(), other.Key.Host)}, namespaces)
			}
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

// takenMatches are the matches that a listener or route configuration has already.
type takenMatches map[string]struct{}

// add enters a chain, unless the owner of its match is another service.
func (taken takenMatches) add(list *[]reach.Chain, c reach.Chain) bool {
	if _, other := taken[c.Match]; other {
		return false
	}
	taken[c.Match] = struct{}{}
	*list = append(*list, c)
	return true
}
