package envoy

import (
	"iter"
	"slices"
	"unicode/utf8"

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

// serviceType is a type with a resource for each service port, or for each of its subsets.
type serviceType struct {
	world.Row
	authority bool // resources are named HOST:PORT, and not as clusters are
	grpcOnly  bool // resources are only for gRPC: listeners and routes of Envoys are of many services
	edsOnly   bool // only service ports with load assignments have the resource
	subsets   bool // subsets have resources, too
	locates   bool // the resource contains endpoints, so the removal of one is urgent
}

// The types of service ports.
var (
	clustersOfServices    = serviceType{Row: ClusterType, subsets: true, locates: true} // it contains endpoints of DNS services
	assignmentsOfServices = serviceType{Row: EndpointType, edsOnly: true, subsets: true, locates: true}
	listenersOfServices   = serviceType{Row: ListenerType, authority: true, grpcOnly: true}
	routesOfServices      = serviceType{Row: RouteType, grpcOnly: true}
)

func serviceTypes() []serviceType {
	return []serviceType{clustersOfServices, assignmentsOfServices, listenersOfServices, routesOfServices}
}

// name returns the name of the resource of a service port.
func (t serviceType) name(host string, port uint32) string {
	if t.authority {
		return names.Listener(host, port)
	}
	return names.Cluster(host, port)
}

// parse parses a name, and the subset in it.
func (t serviceType) parse(name string) (host string, port uint32, subset string, ok bool) {
	if t.subsets {
		name, subset = names.CutSubset(name)
	}
	if t.authority {
		host, port, ok = names.ParseListener(name)
	} else {
		host, port, ok = names.ParseCluster(name)
	}
	return host, port, subset, ok
}

// offered reports whether a kind of client gets the resource for a service port in a form.
func (t serviceType) offered(f reach.Form, kind string) bool {
	switch {
	case t.edsOnly:
		return f == reach.EDS
	case t.grpcOnly:
		return f != reach.NoForm && reach.IsGRPC(kind)
	default:
		return f != reach.NoForm
	}
}

// named yields the names of the resource of a service port and of its subsets.
func (t serviceType) named(host string, port uint32, subsets []*policy.Selector) iter.Seq2[*policy.Selector, string] {
	return func(yield func(*policy.Selector, string) bool) {
		if !yield(nil, t.name(host, port)) || !t.subsets {
			return
		}
		for _, s := range subsets {
			if !yield(s, names.Subset(host, port, s.Name)) {
				return
			}
		}
	}
}

// servicePortNames yields the resources of the service ports of a view, by host and port.
func servicePortNames(w *state, v View, t serviceType) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range w.snapshot.Visible(v.viewer()) {
			var subsets []*policy.Selector
			if v.choosesSubsets() {
				subsets = w.settings.Subsets(w.settings.Of(s.Key.Host))
			}
			for _, port := range s.Ports {
				for of, name := range t.named(s.Key.Host, port.Number, subsets) {
					if t.offered(reach.SubsetForm(of, v.Kind, s, port), v.Kind) && !yield(name) {
						return
					}
				}
			}
		}
	}
}

// portOf is a service port or a subset of it, found by the name of a resource.
type portOf struct {
	*catalog.Service
	port   model.Port
	subset *policy.Selector
	form   reach.Form
	policy *policy.Policy
}

func (p portOf) slot(r world.Row) slot {
	return slot{row: r, key: p.Key, port: p.port.Number, form: p.form, subset: p.subset}
}

// findServicePort finds the service port of a resource that a view has.
func findServicePort(w *state, v View, t serviceType, name string) (p portOf, ok bool) {
	host, number, subset, ok := t.parse(name)
	if !ok {
		return p, false
	}
	if p.Service, ok = w.snapshot.Resolve(v.viewer(), host); !ok {
		return p, false
	}
	if p.port, ok = p.Port(number); !ok {
		return p, false
	}
	p.policy = w.settings.Of(p.Key.Host)
	if p.subset, ok = w.settings.Subset(p.policy, subset); !ok || p.subset != nil && !v.choosesSubsets() {
		return p, false
	}
	p.form = reach.SubsetForm(p.subset, v.Kind, p.Service, p.port)
	return p, t.offered(p.form, v.Kind)
}

// joined yields one list of names after another. The first is for Envoys in the path of
// workloads.
func joined(v View, lists ...iter.Seq[string]) iter.Seq[string] {
	if v.proxy.Role == node.NoRole {
		lists = lists[1:]
	}
	return func(yield func(string) bool) {
		for _, list := range lists {
			for name := range list {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func clusterNames(w *state, v View) iter.Seq[string] {
	return joined(v, ownClusterNames(w, v), servicePortNames(w, v, clustersOfServices), chosenClusters(w, v))
}

func findCluster(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role != node.NoRole {
		if own, ok := findOwnCluster(w, v, name); ok {
			return own, true
		}
	}
	if whole, subset := names.CutSubset(name); subset == names.Chosen {
		return findChosenCluster(w, v, whole)
	}
	p, ok := findServicePort(w, v, clustersOfServices, name)
	if !ok {
		return nil, false
	}
	if p.subset == nil && reach.GoesToOriginal(v.proxy, p.Definition, p.port) {
		p.form = reach.OriginalDST
	}
	c := clusterOf(p.slot(ClusterType), p.Service, p.port)
	if v.Kind == reach.KindEnvoy {
		c = securedBy(c, p.policy.TLS, p.Service, w.settings.TrustDomain)
	}
	if v.proven && p.policy.TLS == nil {
		c = mutuallySecured(c, w.settings, p.Service, p.port)
	}
	return clusterChosen(v, choiceOf(w, v, p), c), true
}

func assignmentNames(w *state, v View) iter.Seq[string] {
	return joined(v, enteredNames(w, v), servicePortNames(w, v, assignmentsOfServices))
}

func findAssignment(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role != node.NoRole {
		if entered, ok := findEntered(w, v, EndpointType, name); ok {
			return entered, true
		}
	}
	p, ok := findServicePort(w, v, assignmentsOfServices, name)
	if !ok {
		return nil, false
	}
	if spread := w.spreads.Of(p.Service, p.port.Number); spread != nil && v.members && p.subset == nil {
		return spreadAssignment{slot{row: EndpointType, key: p.Key, port: p.port.Number}, spread.Partition}, true
	}
	via := gatewaysTo(v, p.Service, p.port.Number, p.subset, p.policy)
	var mutual *policy.MutualPorts
	if v.Kind == reach.KindEnvoy {
		mutual = w.settings.Mesh.In(p.Key.Namespace)
	}
	return assignmentChosen(v.Kind, choiceOf(w, v, p), via, assignment{
		assignmentSlot: assignmentSlot{slot: p.slot(EndpointType).common(), mutual: mutual}, endpoints: p.Endpoints(p.port.Number),
	}), true
}

func allListenerNames(w *state, v View) iter.Seq[string] {
	return joined(v, listenerNames(w, v), servicePortNames(w, v, listenersOfServices))
}

func findAnyListener(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role != node.NoRole {
		if own, ok := findListener(w, v, name); ok {
			return own, true
		}
	}
	if !reach.IsGRPC(v.Kind) {
		return nil, false
	}
	if p, ok := findServicePort(w, v, listenersOfServices, name); ok {
		return listener{p.slot(ListenerType).common()}, true
	}
	short, port, _ := names.ParseListener(name)
	if host, ok := names.LongName(short, v.Namespace, w.settings.Domain); ok {
		if p, ok := findServicePort(w, v, listenersOfServices, names.Listener(host, port)); ok {
			return alias{listener{p.slot(ListenerType).common()}, name}, true
		}
	}
	return nil, false
}

func allRouteNames(w *state, v View) iter.Seq[string] {
	return joined(v, routeNames(w, v), servicePortNames(w, v, routesOfServices))
}

func findAnyRoutes(w *state, v View, name string) (world.Subject, bool) {
	if v.proxy.Role != node.NoRole {
		if own, ok := findRoutes(w, v, name); ok {
			return own, true
		}
	}
	p, ok := findServicePort(w, v, routesOfServices, name)
	if !ok {
		return nil, false
	}
	return route{slot: p.slot(RouteType).common(), policy: p.policy, domain: w.settings.Domain}, true
}

// listener is a gRPC client's way in: it stands for the target the client
// dialled, and leads to the route configuration.
type listener struct{ slot }

// Refers implements [world.Referrer].
func (l listener) Refers(to string) iter.Seq[string] {
	if to == wire.RouteURL {
		return one(l.clusterName())
	}
	return nothing
}

// Encode implements [world.Subject].
func (l listener) Encode() world.Encoded {
	return l.named(names.Listener(l.key.Host, l.port))
}

func (l listener) named(name string) world.Encoded {
	return encode(name, wire.ListenerURL, wire.APIListener(name, l.clusterName()))
}

// alias is the listener of a short name of a service.
type alias struct {
	listener

	name string
}

// Alias implements [world.Alias].
func (alias) Alias() {}

// Slot implements [world.Subject].
func (a alias) Slot() any { return a }

// Encode implements [world.Subject].
func (a alias) Encode() world.Encoded { return a.named(a.name) }

// absentListener has grpc-node sent an empty listener for one that does not exist.
// It remembers a listener that was removed, and when the same comes again takes
// it for no change: a service that returned as it was would stay lost to it. Others
// know better, and grpc-java does not get over an empty listener.
func absentListener(kind string, m world.Mode) world.Absence {
	if kind == reach.KindGRPCNode && m == world.WholeState {
		return world.Empty
	}
	return world.Removal
}

// emptyListener returns a listener without any route: calls fail at once. It has to
// have a virtual host, without which grpc-node ends with an exception.
func emptyListener(name string) world.Encoded {
	host, _, ok := names.ParseListener(name)
	if !ok || len(host) > vhost.LongestHost || !utf8.ValidString(host) {
		return world.Encoded{}
	}
	return encode(name, wire.ListenerURL, wire.EmptyListener(name))
}

// route leads every call of a gRPC client to the cluster of its own name.
type route struct {
	slot
	policy *policy.Policy
	domain string // in which hosts have short names
}

// Refers implements [world.Referrer].
func (r route) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return one(r.clusterName())
	}
	return nothing
}

// Encode implements [world.Subject].
func (r route) Encode() world.Encoded {
	name := r.clusterName()
	hosts := slices.AppendSeq([]string{r.key.Host}, names.ShortNames(r.key.Host, r.domain))
	return encode(name, wire.RouteURL, wire.GRPCRoutes(name, hosts, r.port, wire.Target{Cluster: name, Policy: r.policy}))
}
