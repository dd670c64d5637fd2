package envoy

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/push"
)

// View is what a client sees of any of the types.
type View struct {
	Kind      string // KindEnvoy, KindGRPC or KindGRPCNode
	Namespace string // of its workload; empty if it has none
	scope     *catalog.Scope
	settings  *policy.Prepared       // of the process; nil if nothing is said
	resolver  node.Resolver          // of clusters for Envoys
	proxy     node.Proxy             // of listeners and routes for Envoys; of clusters as much as they depend on
	place     lb.Location            // of endpoints, if it matters to some service; else empty
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

// client returns the workload that calls services in the view.
func (v View) client() reach.Client { return reach.Client{Viewer: v.viewer(), Proxy: v.proxy} }

// hostsIn is the key of the virtual hosts of the view.
func (v View) hostsIn() vhost.Key {
	return vhost.Key{Domain: v.proxy.Domain, Cluster: v.proxy.Cluster, Settings: v.settings}
}

// of is a view as the engine hands it back.
func of(v push.View) View {
	own, _ := v.(View)
	return own
}

// The functions below add the parts of a view that a type depends on.

func viewClusters(w *state, c push.Client, v *View) {
	if c.Kind == reach.KindEnvoy {
		v.place = standpointOf(w, c, true)
		v.resolver, v.proxy, v.inbound = node.ResolverOf(c), clusterProxy(w, c), inboundOf(w, c)
	}
}

func viewEndpoints(w *state, c push.Client, v *View) {
	v.place = standpointOf(w, c, false)
	v.via = w.settings.Networks.RemoteTo(c.Network, c.Addresses)
	viewMembers(w, c, v)
	if c.Kind == reach.KindEnvoy && node.ProxyOf(c).Role == node.Edge {
		v.proxy = node.Proxy{Role: node.Edge, Own: node.AddressesOf(c)}
	}
}

func viewMembers(w *state, c push.Client, v *View) {
	v.members = c.Kind == reach.KindEnvoy && w.spreads != nil && c.Increments
}

func viewListeners(w *state, c push.Client, v *View) {
	if c.Kind == reach.KindEnvoy {
		v.proxy, v.inbound, v.single = proxyIn(w, c), inboundOf(w, c), node.TakesVirtualHosts(c)
	}
}

func viewRoutes(w *state, c push.Client, v *View) {
	if c.Kind != reach.KindEnvoy {
		return
	}
	v.proxy, v.single = proxyIn(w, c), node.TakesVirtualHosts(c)
	v.proxy.Unprivileged = false // it belongs to listeners, and so do the ports of the node
	v.proxy.Outbound = push.AllPorts()
	v.proxy.Domain = w.settings.Domain // and not the client's: it is a key of cached routes
}

func viewVirtualHosts(w *state, c push.Client, v *View) {
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
