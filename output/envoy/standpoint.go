package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// standpoint is where a client is, as far as that decides which endpoints it uses. The
// zero value is that of clients for which it decides nothing.
type standpoint struct {
	model.Locality
	network string
	node    string
	cluster string // of the node, or of the endpoints
}

// order is how it follows from where a client is which endpoints it uses.
type order uint8

const (
	alike      order = iota // all, wherever it is
	byLocality              // the nearest first, by region, zone and sub-zone
	bySameZone              // likewise, by network, region and zone
	bySameNode              // likewise, by network, region, zone, sub-zone and node
	onNode                  // those on its node, and no other
	onCluster               // those of its cluster, and no other
)

// orderOf is the order of a service under its policy: of what the registry and the
// configuration say of localities the configuration counts, if it says anything itself.
func orderOf(d *catalog.Definition, p *policy.Policy) order {
	said := p.LocalityFailover != nil
	switch {
	case d.Traffic.ClusterLocal && d.Resolution == model.ResolutionStatic:
		return onCluster
	case d.Traffic.NodeLocal && d.Resolution == model.ResolutionStatic:
		return onNode
	case said && !*p.LocalityFailover:
		return alike
	case said && p.FailsOver():
		return byLocality
	case d.Traffic.Prefer == model.PreferSameNode:
		return bySameNode
	case d.Traffic.Prefer == model.PreferSameZone:
		return bySameZone
	case p.FailsOver():
		return byLocality
	default:
		return alike
	}
}

// standpointOf is all that resources of a type may have of where a client is.
func (w *World) standpointOf(r push.Row, c push.Client) (at standpoint) {
	if r != EndpointType && (r != ClusterType || c.Kind != KindEnvoy) {
		return at
	}
	totals := w.snapshot.Totals()
	if w.settings.FailsOver || totals.Near > 0 {
		at.Locality = c.Locality
	}
	if totals.Near > 0 {
		at.network = c.Network
	}
	if totals.ByNode > 0 && r == EndpointType && c.Node != "" { // clusters have names, of which nobody knows the node
		at.node, at.cluster = c.Node, c.Cluster
	}
	if totals.ClusterLocal > 0 && r == EndpointType {
		at.cluster = c.Cluster
	}
	return at
}

// as is what matters of a standpoint in an order, so that clients which are given the
// same have the same.
func (s standpoint) as(o order) standpoint {
	switch o {
	case byLocality:
		return standpoint{Locality: s.Locality}
	case bySameZone:
		return standpoint{Locality: model.Locality{Region: s.Region, Zone: s.Zone}, network: s.network}
	case bySameNode:
		if s.node == "" { // else it is the cluster of the node
			s.cluster = ""
		}
		return s
	case onNode:
		return standpoint{node: s.node, cluster: s.cluster}
	case onCluster:
		return standpoint{cluster: s.cluster}
	case alike:
	}
	return standpoint{}
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

// sees reports whether a client uses an endpoint at all.
func (s *standpoint) sees(e catalog.Endpoint, o order) bool {
	switch o {
	case onNode:
		return e.Node == s.node && s.inCluster(e)
	case onCluster: // both have to be the same, also where they say none
		of, _ := e.Labels.Get(clusterLabel)
		return of == s.cluster
	case alike, byLocality, bySameZone, bySameNode:
	}
	return true
}

// clusterLabel is by which an endpoint says of which cluster it is.
const clusterLabel = "topology.istio.io/cluster"

// inCluster reports whether an endpoint is of the client's cluster. Nodes of two clusters
// may have one name. Who does not say of which it is, is of each.
func (s *standpoint) inCluster(e catalog.Endpoint) bool {
	of, _ := e.Labels.Get(clusterLabel)
	return of == "" || s.cluster == "" || of == s.cluster
}

// distance is how far an endpoint is from the client. An endpoint farther away gets
// traffic only while too few of those that are nearer work.
func (s *standpoint) distance(e catalog.Endpoint, o order) uint32 {
	switch {
	case *s == standpoint{}, o == alike, o == onNode, o == onCluster:
		return 0
	case o != byLocality && e.Network != "" && s.network != "" && e.Network != s.network:
		return elsewhere + 1
	case s.Region != e.Locality.Region:
		return elsewhere
	case s.Zone != e.Locality.Zone:
		return sameRegion
	case o == bySameZone:
		return sameZone
	case s.SubZone != e.Locality.SubZone:
		return sameZone
	case o == bySameNode && (s.node == "" || s.node != e.Node || !s.inCluster(e)):
		return sameSubZone
	case o == bySameNode:
		return sameNode
	default:
		return sameSubZone
	}
}

// Distances, from the nearest.
const (
	sameNode uint32 = iota
	sameSubZone
	sameZone
	sameRegion
	elsewhere
	distances = elsewhere + 2 // the last is another network
)
