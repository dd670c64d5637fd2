package envoy

import (
	"fmt"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// View identifies the resources of any type that a client sees.
type View struct {
	Kind      string // KindEnvoy, KindGRPC or KindGRPCNode
	Namespace string // of its workload; empty if it has none
	scope     *catalog.Scope
	settings  *policy.Prepared       // of the process; nil without settings
	resolver  node.Resolver          // of clusters for Envoys
	proxy     node.Proxy             // of listeners and routes for Envoys; of clusters as much as they depend on
	place     lb.Location            // of endpoints, if it matters to some service; else empty
	inbound   inbound                // of clusters and listeners for Envoys
	via       *policy.RemoteGateways // of endpoints, if some network has gateways
	single    bool                   // of listeners and routes for Envoys: hosts of large ports come one by one
	members   bool                   // of endpoints for Envoys: those of large services come one by one
	proven    bool                   // of clusters for Envoys: the client has a certificate of ours, and mutual TLS is on
	account   string                 // of secrets for Envoys: the identity that the client proves
	certified bool                   // of secrets for Envoys: it may be sent its certificate
}

var _ world.Scoped = View{}

// Scope implements [world.Scoped].
func (v View) Scope() fmt.Stringer {
	if v.scope == nil {
		return nil
	}
	return v.scope
}

// viewer returns the viewer of the view, in the catalog's terms.
func (v View) viewer() catalog.Viewer { return catalog.Viewer{Namespace: v.Namespace, Scope: v.scope} }

// client returns the workload that calls services in the view.
func (v View) client() reach.Client {
	return reach.Client{Viewer: v.viewer(), Proxy: v.proxy, Settings: v.settings}
}

// hostsIn is the key of the virtual hosts of the view.
func (v View) hostsIn() vhost.Key {
	return vhost.Key{Domain: v.proxy.Domain, Cluster: v.proxy.Cluster, Settings: v.settings}
}

// choosesSubsets reports whether clients of the view may have routes to a subset of a host. No
// route of Isthmus leads to a subset, so these are Envoys that may have listeners of their own:
// all but sidecars. The view of endpoints is the same for sidecars, which ask only for the
// endpoints of their clusters.
func (v View) choosesSubsets() bool {
	return v.Kind == reach.KindEnvoy && v.proxy.Role != node.Sidecar
}

// of is a view as the engine hands it back.
func of(v world.View) View {
	own, _ := v.(View)
	return own
}

// The functions below add the parts of a view that a type depends on.

func viewClusters(w *state, c world.Client, v *View) {
	if c.Kind == reach.KindEnvoy {
		v.place = locationOf(w, c, true)
		v.resolver, v.proxy, v.inbound = node.ResolverOf(c), clusterProxy(w, c), inboundOf(w, c)
		v.proven = w.settings.Mesh != nil && c.Account != ""
	}
}

func viewEndpoints(w *state, c world.Client, v *View) {
	v.place = locationOf(w, c, false)
	v.via = w.settings.Networks.RemoteTo(c.Network, c.Addresses)
	viewMembers(w, c, v)
	if c.Kind == reach.KindEnvoy && node.ProxyOf(c).Role == node.Edge {
		v.proxy = node.Proxy{Role: node.Edge, Own: node.AddressesOf(c)}
	}
}

func viewMembers(w *state, c world.Client, v *View) {
	v.members = c.Kind == reach.KindEnvoy && w.spreads != nil && c.Increments
}

func viewListeners(w *state, c world.Client, v *View) {
	if c.Kind == reach.KindEnvoy {
		v.proxy, v.inbound, v.single = proxyIn(w, c), inboundOf(w, c), node.TakesVirtualHosts(c)
	}
}

func viewRoutes(w *state, c world.Client, v *View) {
	if c.Kind != reach.KindEnvoy {
		return
	}
	v.proxy, v.single = proxyIn(w, c), node.TakesVirtualHosts(c)
	v.proxy.Unprivileged = false // it belongs to listeners, and so do the ports of the node
	v.proxy.Outbound = world.AllPorts()
	v.proxy.Domain = w.settings.Domain // and not the client's: it is a key of cached routes
}

func viewVirtualHosts(w *state, c world.Client, v *View) {
	switch {
	case c.Kind != reach.KindEnvoy:
		return
	case node.ProxyOf(c).Role == node.Edge:
		v.proxy = node.Proxy{Role: node.Edge}
	default:
		v.proxy = node.Proxy{Domain: w.settings.Domain, Cluster: proxyIn(w, c).Cluster}
	}
	v.single = node.TakesVirtualHosts(c) && node.ProxyOf(c).Role != node.NoRole
}

// ofClusters is as much of [World.proxyOf] as clusters depend on.
func clusterProxy(w *state, c world.Client) node.Proxy {
	p := proxyIn(w, c)
	of := node.Proxy{Role: p.Role}
	if p.Role == node.Edge {
		of.Own = node.AddressesOf(c)
	}
	switch {
	case p.Role == node.Sidecar && p.Mode == node.None:
		of.Mode = node.None
	case w.snapshot.HeadlessDiffers():
		of.Cluster = p.Cluster
	}
	return of
}

// proxyOf is [proxyOf] with the client's cluster, where that decides anything.
func proxyIn(w *state, c world.Client) node.Proxy {
	p := node.ProxyOf(c)
	if p.Role == node.Sidecar {
		p.Cluster = w.snapshot.AddressCluster(c.Cluster)
	}
	return p
}

// gatewaysTo are the gateways through which clients of a view reach the endpoints of a port
// in other networks; nil if no endpoint names a network. Gateways route by SNI, which Envoys set
// only in the mode ISTIO_MUTUAL, and only to services inside of the mesh. Other clients are not
// sent endpoints behind gateways.
func gatewaysTo(v View, s *catalog.Service, port uint32, of *policy.Selector, p *policy.Policy) *policy.RemoteGateways {
	if v.via == nil || s.Endpoints(port).Counts().Networked == 0 {
		return nil
	}
	_, named := names.Mesh(s.Key.Host, port, of.String())
	if v.Kind != reach.KindEnvoy || !p.TLS.OfMesh() || !named || s.Location == model.MeshExternal || s.Traffic.ClusterLocal {
		return v.via.Closed
	}
	return v.via
}

// locationOf is the location of a client, as far as it matters to some service. Of clusters
// no node matters: they contain names, and the nodes of names are unknown.
func locationOf(w *state, c world.Client, ofCluster bool) (at lb.Location) {
	totals := w.snapshot.Totals()
	if w.settings.FailsOver || totals.Near > 0 {
		at.Locality = c.Locality
	}
	if totals.Near > 0 {
		at.Network = c.Network
	}
	if ofCluster {
		return at
	}
	if totals.ByNode > 0 && c.Node != "" {
		at.Node, at.Cluster = c.Node, c.Cluster
	}
	if totals.ClusterLocal > 0 {
		at.Cluster = c.Cluster
	}
	return at
}

// movesViews reports whether clients have other views because of a change: where they are
// has begun to matter, or does no longer.
func movesViews(now *catalog.Snapshot, c catalog.Change) bool {
	is := now.Totals()
	was := is.Before(c)
	return (was.Near > 0) != (is.Near > 0) || (was.ByNode > 0) != (is.ByNode > 0) || (was.ClusterLocal > 0) != (is.ClusterLocal > 0)
}

// movesClusters reports whether clients have other views because of a change: their cluster
// has begun to decide at which addresses they call services, or which of these are headless
// to them, or does no longer.
func movesClusters(now *catalog.Snapshot, c catalog.Change) bool {
	was, differed := now.AddressClustersBefore(c)
	return differed != now.HeadlessDiffers() || !slices.Equal(was, now.AddressClusters())
}
