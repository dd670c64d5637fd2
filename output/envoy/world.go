package envoy

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// World is a catalog snapshot as xDS clients see it.
type World struct {
	snapshot *catalog.Snapshot
	complete bool
	root     string
	settings *policy.Prepared

	definitions *definitions // for the edge, and for secrets
	spreads     *spreads     // nil if there are none
}

var _ push.World = (*World)(nil)

// NewWorld returns the world of a snapshot. Complete says that every source
// has been listed. The scopes of the namespace root hold for workloads that
// have none of their own.
func NewWorld(snapshot *catalog.Snapshot, complete bool, root string) *World {
	return worldUnder(policy.Istio, snapshot, complete, root, nil)
}

// worldUnder is [NewWorld] for some settings. Known are the definitions of the snapshot.
func worldUnder(s *policy.Prepared, snapshot *catalog.Snapshot, complete bool, root string, known *definitions) *World {
	return &World{snapshot: snapshot, complete: complete, root: root, settings: s, definitions: known}
}

// Complete implements [push.World].
func (w *World) Complete() bool { return w.complete }

// View implements [push.World].
func (w *World) View(r push.Row, c push.Client) push.View {
	v := View{Kind: c.Kind, Namespace: c.Namespace, scope: w.snapshot.ScopeOf(c.Namespace, c.Labels, w.root)}
	v.place = w.standpointOf(r, c)
	if r == EndpointType {
		v.via = w.settings.Networks.RemoteTo(c.Network, c.Addresses)
	}
	if w.settings != policy.Istio {
		v.settings = w.settings
	}
	if c.Kind != KindEnvoy {
		return v
	}
	switch r {
	case ClusterType:
		v.resolver, v.proxy, v.inbound = resolverOf(c), w.ofClusters(c), w.inboundOf(c)
	case ListenerType:
		v.proxy, v.inbound, v.single = w.proxyOf(c), w.inboundOf(c), takesHosts(c)
	case VirtualHostType:
		v.proxy = proxy{domain: w.settings.Domain, cluster: w.proxyOf(c).cluster}
		v.single = takesHosts(c) && proxyOf(c).role != noRole
		if proxyOf(c).role == edge {
			v.proxy = proxy{role: edge}
		}
	case RouteType:
		v.proxy, v.single = w.proxyOf(c), takesHosts(c)
		v.proxy.unprivileged = false // which is of listeners, as the ports of the node are
		v.proxy.outbound = push.AllPorts()
		v.proxy.domain = w.settings.Domain // and not what the client says: it is a key of what is kept
	case EndpointType, MemberType:
		v.members = w.spreads != nil && c.Increments
		if r == EndpointType && proxyOf(c).role == edge {
			v.proxy = proxy{role: edge, own: ownAddressesOf(c)}
		}
	}
	return v
}

// View is what a client sees of any of the types.
type View struct {
	Kind      string // KindEnvoy, KindGRPC or KindGRPCNode
	Namespace string // of its workload; empty if it has none
	scope     *catalog.Scope
	settings  *policy.Prepared       // of the process; nil if nothing is said
	resolver  resolver               // of clusters for Envoys
	proxy     proxy                  // of listeners and routes for Envoys; of clusters as much as they depend on
	place     standpoint             // of endpoints, if it matters to some service; else empty
	order     order                  // of the service that is looked up; zero in what clients have
	avoids    avoided                // likewise
	inbound   inbound                // of clusters and listeners for Envoys
	via       *policy.RemoteGateways // of endpoints, if some network has gateways
	single    bool                   // of listeners and routes for Envoys: hosts of large ports come one by one
	members   bool                   // of endpoints for Envoys: those of large services come one by one
}

var _ push.Scoped = View{}

// Scope implements [push.Scoped].
func (v View) Scope() fmt.Stringer {
	if v.scope == nil {
		return nil
	}
	return v.scope
}

// viewer returns whose view it is, in the catalog's terms.
func (v View) viewer() catalog.Viewer { return catalog.Viewer{Namespace: v.Namespace, Scope: v.scope} }

// of is a view as the engine hands it back.
func of(v push.View) View {
	own, _ := v.(View)
	return own
}

// Names implements [push.World]: by host, then port, and then what an Envoy has
// beside the resources of service ports.
func (w *World) Names(view push.View, r push.Row) iter.Seq[string] {
	v := of(view)
	if r == SecretType {
		return w.secretNames(v)
	}
	if r == MemberType {
		return w.memberNames(v)
	}
	if r == VirtualHostType {
		return w.singleHostNames(v)
	}
	if rows[r].subject == nil {
		return nothing
	}
	return func(yield func(string) bool) {
		if own := rows[r].own; own != nil && v.proxy.role != noRole {
			for name := range own.names(w, v) {
				if !yield(name) {
					return
				}
			}
		}
		for s := range w.snapshot.Visible(v.viewer()) {
			for name := range w.namesOf(s, v, r) {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// namesOf yields the names of a service's resources, by port.
func (w *World) namesOf(s *catalog.Service, v View, r push.Row) iter.Seq[string] {
	return func(yield func(string) bool) {
		subsets := w.settings.Subsets(w.settings.Of(s.Key.Host))
		for _, port := range s.Ports {
			for of, name := range rows[r].named(s.Key.Host, port.Number, subsets) {
				if rows[r].offered(subsetForm(of, v.Kind, s, port), v.Kind) && !yield(name) {
					return
				}
			}
		}
	}
}

// Find implements [push.World].
func (w *World) Find(view push.View, r push.Row, name string) (push.Subject, bool) {
	v := of(view)
	if r == MemberType {
		return w.findMembers(v, name)
	}
	if r == VirtualHostType {
		return w.findSingleHost(v, name)
	}
	if own := rows[r].own; own != nil && v.proxy.role != noRole {
		if subject, ok := own.find(w, v, name); ok {
			return subject, true
		}
	}
	if r == SecretType {
		return w.findSecret(v, name)
	}
	whole, subset := name, ""
	if rows[r].subsets {
		whole, subset = names.CutSubset(name)
	}
	host, number, ok := rows[r].parse(whole)
	if !ok {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), host)
	if !ok {
		return nil, false
	}
	port, ok := s.Port(number)
	if !ok {
		return nil, false
	}
	return w.findOf(s, port, v, r, subset)
}

// findOf returns the resource of a service port or of one of its subsets.
func (w *World) findOf(s *catalog.Service, port model.Port, v View, r push.Row, subset string) (push.Subject, bool) {
	p := w.settings.Of(s.Key.Host)
	of, ok := w.settings.Subset(p, subset)
	if !ok {
		return nil, false
	}
	f := subsetForm(of, v.Kind, s, port)
	if !rows[r].offered(f, v.Kind) { // as of a type without resources
		return nil, false
	}
	if spread := w.spreads.of(s, port.Number); spread != nil && r == EndpointType && v.members && subset == "" {
		return spreadAssignment{slot{row: r, key: s.Key, port: port.Number}, spread.partition}, true
	}
	v.order = orderOf(s.Definition, p)
	v.avoids = avoidedIn(w.settings, v.proxy, s.Key.Host, s.Endpoints(port.Number))
	if r == EndpointType {
		v.via = v.gatewaysTo(s, port.Number, of, p)
	}
	if r == ClusterType && of == nil && v.proxy.leads(s.Definition, port) {
		f = originalDST
	}
	subject := rows[r].subject(slot{row: r, key: s.Key, port: port.Number, form: f, subset: of}, s, port)
	if c, ok := subject.(cluster); ok && v.Kind == KindEnvoy {
		subject = securedBy(c, p.TLS, s, w.settings.TrustDomain)
	}
	return v.variant(subject), true
}

// memberNames yields the collections of the services that a view has.
func (w *World) memberNames(v View) iter.Seq[string] {
	if !v.members {
		return nothing
	}
	return func(yield func(string) bool) {
		for number := range w.spreads.named.All() {
			name := (&collection{epoch: w.spreads.epoch, number: number}).glob()
			if _, ok := w.findMembers(v, name); ok && !yield(name) {
				return
			}
		}
	}
}

// findMembers finds a collection, for who may see the service.
func (w *World) findMembers(v View, name string) (push.Subject, bool) {
	if !v.members {
		return nil, false
	}
	c := w.spreads.collection(name)
	if c == nil {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), c.Host)
	if !ok || s.Key != c.ServiceKey {
		return nil, false
	}
	return roster{c, -1}, true
}

func formFor(kind string, s *catalog.Service, port model.Port) form {
	f, _ := offer(kind, s, port)
	return f
}
