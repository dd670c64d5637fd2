package envoy

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// routeNames yields the route configurations of ports, and those of the ports of single
// hosts that have a listener to themselves.
func routeNames(w *state, v View) iter.Seq[string] {
	if v.proxy.Role == node.Edge {
		return edgeRouteNames(w.settings, v.single && w.definitions != nil)
	}
	return func(yield func(string) bool) {
		for index := range w.snapshot.Ports() {
			all := routes{proxySlot{view: v}, "", index}
			some := false
			for s := range all.services() {
				if !some && (!yield(names.PortRoutes(index.Number)) || v.single && !yield(names.HostRoutes(index.Number))) {
					return
				}
				some = true
				if all.hasOwnListener(s) && !yield(names.Listener(s.Key.Host, index.Number)) {
					return
				}
			}
		}
	}
}

// hasOwnListener reports whether requests for a service come through listeners of its own.
func (r routes) hasOwnListener(s catalog.ServiceDefinition) bool {
	for at := range reach.ListensAt(r.view.client(), s, r.index) {
		if at != r.view.proxy.Shared() {
			return true
		}
	}
	return false
}

// findRoutes returns the route configuration of a port, or of a port of one host.
func findRoutes(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role != node.Sidecar {
		return findEdgeRoutes(w, v, name)
	}
	if number, ofHosts := names.ParseHostRoutes(name); ofHosts {
		return findHostRoutes(w, v, name, number)
	}
	v.single = false // the rest is the same for all
	digits, host := name, ""
	if h, _, one := names.ParseListener(name); one {
		host, digits = h, name[len(h)+1:]
	}
	number, ok := names.ParsePort(digits)
	if !ok || number > names.HighestPort {
		return nil, false
	}
	r := routes{proxySlot{RouteType, name, v}, host, w.snapshot.Port(number)}
	for s := range r.services() {
		if host == "" || r.hasOwnListener(s) {
			return r, true
		}
	}
	return nil, false
}

// routes is a route configuration of many hosts, or of one.
type routes struct {
	proxySlot
	host  string // empty for all
	index *catalog.PortServices
}

// Refers implements [world.Referrer].
func (r routes) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for s := range r.services() {
			if !yield(names.Cluster(s.Key.Host, r.index.Number)) {
				return
			}
		}
	}
}

// services yields those that requests are routed to, by host.
func (r routes) services() iter.Seq[catalog.ServiceDefinition] {
	return func(yield func(catalog.ServiceDefinition) bool) {
		for s := range r.index.Visible(r.view.viewer()) {
			if r.host != "" && s.Key.Host != r.host || !reach.HasCluster(s, r.index.Number) {
				continue
			}
			port, _ := s.Port(r.index.Number)
			if kind := reach.TrafficOf(port); (kind == reach.HTTP || kind == reach.Detected) && !yield(s) {
				return
			}
		}
	}
}

// Encode implements [world.Subject]. A domain may occur only once, whatever its case: its
// owner gets it.
func (r routes) Encode() world.Encoded {
	all := vhost.Of(r.index, r.view.hostsIn())
	if r.host == "" {
		return completeRoutes(r.view.settings, r.name, all.SeenBy(r.view.viewer()))
	}
	for s := range r.services() {
		if h := all.Find(s); h != nil {
			return r.toOnly(h)
		}
	}
	return completeRoutes(r.view.settings, r.name, &vhost.Pieces{})
}

// toOnly leads all requests to a service. They came to its address, so they are for it,
// whatever host they name.
func (r routes) toOnly(h *vhost.Host) world.Encoded {
	hosts := &vhost.Pieces{}
	hosts.Add(h.FragmentOf([]string{vhost.AnyDomain}))
	return vhost.EncodeRoutes(wire.Routes(r.name, false), hosts)
}

// emptyRoutes returns a route configuration without services. An Envoy that names one has a
// listener, ours or of its bootstrap, that waits for it. A name that is none of ours gets no
// route to other destinations: only sidecars have a cluster for these.
func emptyRoutes(s *policy.Prepared, name string) world.Encoded {
	if _, atEdge := names.ParseEdgeRoutes(strings.TrimSuffix(name, names.HostsSuffix)); atEdge {
		return edgeRoutes{proxySlot: proxySlot{name: name}}.Encode()
	}
	if !utf8.ValidString(name) {
		return world.Encoded{}
	}
	if !names.IsOfPort(name) {
		return completeRoutes(blocking, name, &vhost.Pieces{})
	}
	return completeRoutes(s, name, &vhost.Pieces{})
}

// blocking are settings by which nothing is reached but services.
var blocking = (&policy.Settings{Outbound: policy.RegistryOutbound}).Prepare()

// completeRoutes adds the route of requests for all other hosts.
func completeRoutes(s *policy.Prepared, name string, hosts *vhost.Pieces) world.Encoded {
	hosts.Add(vhost.NewFragment(wire.OtherHosts(s.OrIstio().RegistryOnly)))
	return vhost.EncodeRoutes(wire.Routes(name, false), hosts)
}
