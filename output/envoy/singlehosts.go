package envoy

import (
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// Envoy 1.40 takes single hosts over ADS. Releases up to 1.30 at least reject a route
// configuration with VHDS over ADS, and it is not known which one was the first that does not.
const hostsFromMajor, hostsFromMinor = 1, 40

// takesHosts reports whether a client takes hosts one by one.
func takesHosts(c push.Client) bool {
	return c.Increments && slices.Compare(c.Release[:], []uint32{hostsFromMajor, hostsFromMinor}) >= 0
}

// usesHosts reports whether a view's listeners lead to them.
func (v View) usesHosts(index *catalog.PortServices) bool {
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
func findHostRoutes(w *World, v View, name string, number uint32) (push.Subject, bool) {
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
		all := hostsOf(r.index, r.view)
		for s := range r.index.Visible(r.view.viewer()) {
			if is, ok := all.single(r.view, s); ok && !yield(is) {
				return
			}
		}
	}
}

// Refers implements [push.Referrer].
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

// Encode implements [push.Subject].
func (r hostRoutesSubject) Encode() push.Encoded {
	rest := &fragments{}
	rest.add(newFragment(wire.OtherHosts(r.view.settings.OrIstio().RegistryOnly)))
	p := &pieces{}
	p.add(rest)
	return encodeRoutes(wire.Routes(r.name, true), p)
}

// singleHost is the virtual host of a service at a large port, as some viewers see it.
type singleHost struct {
	*portHost

	own     bool   // of the namespace in which it has its bare name
	domains string // those that others leave it; empty if it has all
}

// single returns the virtual host of a service for a view; ok is false if it has none.
func (a *portHosts) single(v View, s catalog.ServiceDefinition) (is singleHost, ok bool) {
	h := a.find(s)
	if h == nil {
		return is, false
	}
	is = singleHost{portHost: h, own: h.ownFor(v.Namespace)}
	if h.contested {
		sees := func(s catalog.ServiceDefinition) bool { return a.index.Means(v.viewer(), s) }
		is.domains = strings.Join(h.wonBy(a.claims, v.Namespace, sees), "\n")
		return is, is.domains != ""
	}
	return is, true
}

func (h singleHost) name() string { return names.VirtualHost(h.Key.Host, h.number) }

// singleSlot tells a single host from every other, as others see it as well.
type singleSlot struct {
	key     catalog.ServiceKey
	number  uint32
	in      hostsIn
	own     bool
	domains string
}

// Slot implements [push.Subject].
func (h singleHost) Slot() any { return singleSlot{h.Key, h.number, h.in, h.own, h.domains} }

// Refers implements [push.Referrer].
func (h singleHost) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return one(names.Cluster(h.Key.Host, h.number))
	}
	return nothing
}

// Encode implements [push.Subject]. Envoy ignores the removal of a host whose name is not
// that of the resource.
func (h singleHost) Encode() push.Encoded {
	domains := strings.Split(h.domains, "\n")
	if h.domains == "" {
		domains = h.domainsFor(h.own)
	}
	m := h.virtualHost(domains)
	m.Name = h.name()
	return encode(m.GetName(), wire.VirtualHostURL, m)
}

// findSingleHost finds one by its name.
func (w *World) findSingleHost(v View, name string) (push.Subject, bool) {
	if v.proxy.role == edge {
		return w.findEdgeHost(v, name)
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
	is, ok := hostsOf(index, v).single(v, s.ServiceDefinition)
	if !ok {
		return nil, false
	}
	return is, true
}

// singleHostNames yields those of all ports.
func (w *World) singleHostNames(v View) iter.Seq[string] {
	if v.proxy.role == edge {
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
