package lb

import (
	"cmp"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Location is the location of a client, as far as its endpoints depend on it. The zero value
// means that they do not.
type Location struct {
	model.Locality
	Network string
	Node    string
	Cluster string // of the node, or of the endpoints
}

// Order is how the endpoints of a client depend on its location.
type Order uint8

// The orders of endpoints.
const (
	Alike      Order = iota // all, wherever it is
	ByLocality              // the nearest first, by region, zone and sub-zone
	BySameZone              // likewise, by network, region and zone
	bySameNode              // likewise, by network, region, zone, sub-zone and node
	onNode                  // those on its node, and no other
	onCluster               // those of its cluster, and no other
)

// OrderOf returns the order of a service port under its policy. Shares go before near endpoints,
// unless the split says otherwise. The configuration overrides the registry if it sets
// localityFailover.
func OrderOf(d *catalog.Definition, port uint32, p *policy.Policy) Order {
	static := d.ResolutionAt(port) == model.ResolutionStatic
	said := p.LocalityFailover != nil
	switch {
	case d.Traffic.ClusterLocal && static:
		return onCluster
	case d.Traffic.NodeLocal && static:
		return onNode
	case d.Split.IgnoresLocality(): // else the nearest backend would get everything
		return Alike
	case said && !*p.LocalityFailover:
		return Alike
	case said && p.FailsOver():
		return ByLocality
	case d.Traffic.Prefer == model.PreferSameNode:
		return bySameNode
	case d.Traffic.Prefer == model.PreferSameZone:
		return BySameZone
	case p.FailsOver():
		return ByLocality
	default:
		return Alike
	}
}

// Within returns the part of a location that matters in an order, so that clients with the same
// endpoints have equal locations.
func (s Location) Within(o Order) Location {
	switch o {
	case ByLocality:
		return Location{Locality: s.Locality}
	case BySameZone:
		return Location{Locality: model.Locality{Region: s.Region, Zone: s.Zone}, Network: s.Network}
	case bySameNode:
		if s.Node == "" { // else it is the cluster of the node
			s.Cluster = ""
		}
		return s
	case onNode:
		return Location{Node: s.Node, Cluster: s.Cluster}
	case onCluster:
		return Location{Cluster: s.Cluster}
	case Alike:
	}
	return Location{}
}

// sees reports whether a client uses an endpoint at all.
func (s *Location) sees(e catalog.Endpoint, o Order) bool {
	switch o {
	case onNode:
		return e.Node == s.Node && s.inCluster(e)
	case onCluster: // equal, even if both are empty
		of, _ := e.Labels.Get(ClusterLabel)
		return of == s.Cluster
	case Alike, ByLocality, BySameZone, bySameNode:
	}
	return true
}

// ClusterLabel is the label with the Kubernetes cluster of an endpoint.
const ClusterLabel = "topology.istio.io/cluster"

// inCluster reports whether an endpoint is of the client's cluster: nodes of two clusters may
// have one name. An endpoint or client without a cluster is of every cluster.
func (s *Location) inCluster(e catalog.Endpoint) bool {
	of, _ := e.Labels.Get(ClusterLabel)
	return of == "" || s.Cluster == "" || of == s.Cluster
}

// distance is how far an endpoint is from the client. An endpoint farther away gets
// traffic only while too few of those that are nearer work.
func (s *Location) distance(e catalog.Endpoint, o Order) uint32 {
	switch {
	case *s == Location{}, o == Alike, o == onNode, o == onCluster:
		return 0
	case o != ByLocality && e.Network != "" && s.Network != "" && e.Network != s.Network:
		return elsewhere + 1
	case s.Region != e.Locality.Region:
		return elsewhere
	case s.Zone != e.Locality.Zone:
		return sameRegion
	case o == BySameZone:
		return sameZone
	case s.SubZone != e.Locality.SubZone:
		return sameZone
	case o == bySameNode && (s.Node == "" || s.Node != e.Node || !s.inCluster(e)):
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

// CompareLocalities orders localities by region, zone and sub-zone.
func CompareLocalities(a, b *model.Locality) int {
	return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.Zone, b.Zone), strings.Compare(a.SubZone, b.SubZone))
}
