package envoy

import (
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// usesHosts reports whether a view's listeners lead to them.
func usesHosts(v View, index *catalog.PortServices) bool {
	return v.single && index.Len() >= v.settings.OrIstio().LargePort
}

// hostRoutesSubject is the route configuration of a port that takes single hosts. It has
// the host for all other requests, and brings the others.
type hostRoutesSubject struct {
	proxySlot
	index *catalog.PortServices // nil if the port has no services
}

// findHostRoutes returns it for any port, of services or not, whatever number of services
// the settings name. Envoy keeps it while it drains a listener, also one of an earlier
// process. It removes hosts only while there is VHDS in it.
func findHostRoutes(w *state, v View, name string, number uint32) (world.Subject, bool) {
	if !v.single {
		return nil, false
	}
	return hostRoutesSubject{proxySlot{RouteType, name, v}, w.snapshot.Port(number)}, true
}

// hosts yields the single hosts of the port, by name.
func (r hostRoutesSubject) hosts() iter.Seq[singleHost] {
	return func(yield func(singleHost) bool) {
		if r.index == nil {
			return
		}
		all := vhost.Of(r.index, r.view.hostsIn())
		for h := range all.Visible(r.view.viewer()) {
			if is, ok := singleOf(all, r.view.viewer(), h); ok && !yield(is) {
				return
			}
		}
	}
}

// Refers implements [world.Referrer].
func (r hostRoutesSubject) Refers(to string) iter.Seq[string] {
	if to != wire.VirtualHostURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for is := range r.hosts() {
			if !yield(is.name()) {
				return
			}
		}
	}
}

// Encode implements [world.Subject].
func (r hostRoutesSubject) Encode() world.Encoded {
	hosts := &vhost.Pieces{}
	hosts.Add(vhost.NewFragment(wire.OtherHosts(r.view.settings.OrIstio().RegistryOnly)))
	return vhost.EncodeRoutes(wire.Routes(r.name, true), hosts)
}

// singleHost is the virtual host of a service at a large port, as some viewers see it.
type singleHost struct {
	*vhost.Host

	own     bool   // of the namespace in which it has its bare name
	domains string // those that others leave it; empty if it has all
}

// singleOf returns a virtual host as a view sees it; ok is false if no domain is left to it.
func singleOf(a *vhost.Port, v catalog.Viewer, h *vhost.Host) (is singleHost, ok bool) {
	is = singleHost{Host: h, own: h.OwnFor(v.Namespace)}
	if h.InConflict {
		is.domains = strings.Join(a.Won(h, v), "\n")
		return is, is.domains != ""
	}
	return is, true
}

func (h singleHost) name() string { return names.VirtualHost(h.Key.Host, h.Number) }

// singleSlot tells a single host from every other, as others see it as well.
type singleSlot struct {
	key     catalog.ServiceKey
	number  uint32
	in      vhost.Key
	own     bool
	domains string
}

// Slot implements [world.Subject].
func (h singleHost) Slot() any { return singleSlot{h.Key, h.Number, h.In, h.own, h.domains} }

// Refers implements [world.Referrer].
func (h singleHost) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return one(names.Cluster(h.Key.Host, h.Number))
	}
	return nothing
}

// Encode implements [world.Subject]. The virtual host has the name of the
// resource: otherwise Envoy ignores its removal.
func (h singleHost) Encode() world.Encoded {
	domains := strings.Split(h.domains, "\n")
	if h.domains == "" {
		domains = h.DomainsFor(h.own)
	}
	m := h.VirtualHost(domains)
	m.Name = h.name()
	return encode(m.GetName(), wire.VirtualHostURL, m)
}

// findSingleHost finds one by its name.
func findSingleHost(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role == node.Edge {
		return findEdgeHost(w, v, name)
	}
	host, number, ok := names.ParseVirtualHost(name)
	index := w.snapshot.Port(number)
	if !ok || !v.single || index == nil {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), host)
	if !ok {
		return nil, false
	}
	all := vhost.Of(index, v.hostsIn())
	if h := all.Find(s.ServiceDefinition); h != nil {
		if is, ok := singleOf(all, v.viewer(), h); ok {
			return is, true
		}
	}
	return nil, false
}

// singleHostNames yields those of all ports.
func singleHostNames(w *state, v View) iter.Seq[string] {
	if v.proxy.Role == node.Edge {
		return w.definitions.edgeHostNames(v, w.settings.Edge...)
	}
	return func(yield func(string) bool) {
		if !v.single {
			return
		}
		for index := range w.snapshot.Ports() {
			for is := range (hostRoutesSubject{proxySlot{view: v}, index}).hosts() {
				if !yield(is.name()) {
					return
				}
			}
		}
	}
}
