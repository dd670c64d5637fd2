package envoy

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/push"
)

// ofClusters is as much of [World.proxyOf] as clusters depend on.
func clusterProxy(w *state, c push.Client) node.Proxy {
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
func proxyIn(w *state, c push.Client) node.Proxy {
	p := node.ProxyOf(c)
	if p.Role == node.Sidecar {
		p.Cluster = w.snapshot.AddressCluster(c.Cluster)
	}
	return p
}
