package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
)

// gatewaysTo are the gateways through which clients of a view reach the endpoints of a port
// in other networks; nil if no endpoint names a network. Gateways lead on by the name in the handshake
// that Envoys give in the mode ISTIO_MUTUAL alone, and to services inside of the mesh: all
// others are not given what is behind them.
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

// standpointOf is the location of a client, as far as it matters to some service. Of clusters
// no node matters: they contain names, whose nodes are unknown.
func standpointOf(w *state, c push.Client, ofCluster bool) (at lb.Location) {
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
