package envoy

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// routeNames yields the route configurations of ports, and those of the ports of single
// hosts that have a listener to themselves.
func routeNames(w *World, v View) iter.Seq[string] {
	if v.proxy.role == edge {
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
				if all.alone(s) && !yield(names.Listener(s.Key.Host, index.Number)) {
					return
				}
			}
		}
	}
}

// alone reports whether requests for a service come through listeners of its own.
func (r routes) alone(s catalog.ServiceDefinition) bool {
	for at := range r.view.proxy.listensAt(s, r.index) {
		if at != r.view.proxy.shared() {
			return true
		}
	}
	return r.view.proxy.apart(s, r.index)
}

// findRoutes returns the route configuration of a port, or of a port of one host.
func findRoutes(w *World, v View, name string) (push.Subject, bool) {
	if v.proxy.role != sidecar {
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
		if host == "" || r.alone(s) {
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

// Refers implements [push.Referrer].
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
			if r.host != "" && s.Key.Host != r.host || !hasCluster(s, r.index.Number) {
				continue
			}
			port, _ := s.Port(r.index.Number)
			if kind := trafficOf(port); (kind == httpOnly || kind == sniffed) && !yield(s) {
				return
			}
		}
	}
}

// Encode implements [push.Subject]. A domain may occur only once, whatever its case:
// the oldest service has it.
func (r routes) Encode() push.Encoded {
	all := hostsOf(r.index, r.view)
	if r.host == "" {
		return completeRoutes(r.view.settings, r.name, all.seenBy(r.view))
	}
	for s := range r.services() {
		if h := all.find(s); h != nil {
			return r.toOnly(h)
		}
	}
	return completeRoutes(r.view.settings, r.name, &pieces{})
}

// toOnly leads all requests to a service. They came to its address, so they are for it,
// whatever host they name.
func (r routes) toOnly(h *portHost) push.Encoded {
	hosts := &fragments{}
	hosts.add(h.fragmentOf([]string{anyDomain}))
	p := &pieces{}
	p.add(hosts)
	return encodeRoutes(wire.Routes(r.name, false), p)
}

// voidRoutes is a route configuration without services. An Envoy that names one has it
// from a listener, ours or of its bootstrap, which waits for it whatever its name is. What
// is named like none of ours leads nowhere: only sidecars have a cluster for all else.
func voidRoutes(s *policy.Prepared, name string) push.Encoded {
	if _, atEdge := names.ParseEdgeRoutes(strings.TrimSuffix(name, names.HostsSuffix)); atEdge {
		return edgeRoutes{proxySlot: proxySlot{name: name}}.Encode()
	}
	if !utf8.ValidString(name) {
		return push.Encoded{}
	}
	if !names.IsOfPort(name) {
		return completeRoutes(blocking, name, &pieces{})
	}
	return completeRoutes(s, name, &pieces{})
}

// blocking are settings by which nothing is reached but services.
var blocking = (&policy.Settings{Outbound: policy.RegistryOutbound}).Prepare()

// completeRoutes adds what requests for all other hosts meet.
func completeRoutes(s *policy.Prepared, name string, hosts *pieces) push.Encoded {
	rest := &fragments{}
	rest.add(newFragment(wire.OtherHosts(s.OrIstio().RegistryOnly)))
	hosts.add(rest)
	return encodeRoutes(wire.Routes(name, false), hosts)
}

// anyDomain matches requests that name no other domain.
const anyDomain = "*"

// domainsOf yields the authorities by which viewers may call a service; own are those of
// its own namespace, and its addresses are those in a cluster.
func domainsOf(s catalog.ServiceDefinition, domain, cluster string, own bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		host := s.Key.Host
		if !yield(host) || host[len(host)-1] != '.' && !yield(host+".") {
			return
		}
		if name, namespace, ok := shortName(host, domain); ok {
			short := name + "." + namespace
			if !yield(short) || !yield(short+".svc") || own && !yield(name) {
				return
			}
		}
		for address := range s.OwnAddressesIn(cluster) {
			if !yield(authority(address)) {
				return
			}
		}
	}
}

// shortName takes apart a host as Kubernetes names them, NAME.NAMESPACE.svc.DOMAIN.
func shortName(host, domain string) (name, namespace string, ok bool) {
	rest, own := strings.CutSuffix(host, ".svc."+domain)
	name, namespace, ok = strings.Cut(rest, ".")
	return name, namespace, own && ok && name != "" && namespace != "" && !strings.ContainsRune(namespace, '.')
}

// authority writes an address as requests name it.
func authority(address string) string {
	if strings.ContainsRune(address, ':') {
		return "[" + address + "]"
	}
	return address
}
