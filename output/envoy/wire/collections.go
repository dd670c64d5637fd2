package wire

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/model"
)

// Collections is a load assignment that names collections of endpoints.
type Collections struct {
	Name   string
	Groups []CollectionGroup
}

// CollectionGroup is the endpoints of a locality in a collection.
type CollectionGroup struct {
	model.Locality
	Weight     uint32 // approximate sum of the members' weights
	Collection string // its name
}

// Message returns the assignment. Clients wait for its collections until the limit.
func (c *Collections) Message(limit time.Duration) *endpointv3.ClusterLoadAssignment {
	m := &endpointv3.ClusterLoadAssignment{ClusterName: c.Name}
	for _, g := range c.Groups {
		source := fromADS()
		source.InitialFetchTimeout = durationpb.New(limit)
		m.Endpoints = append(m.Endpoints, &endpointv3.LocalityLbEndpoints{
			Locality:            &corev3.Locality{Region: g.Region, Zone: g.Zone, SubZone: g.SubZone},
			LoadBalancingWeight: wrapperspb.UInt32(g.Weight),
			LbConfig: &endpointv3.LocalityLbEndpoints_LedsClusterLocalityConfig{
				LedsClusterLocalityConfig: &endpointv3.LedsClusterLocalityConfig{LedsConfig: source, LedsCollectionName: g.Collection},
			},
		})
	}
	return m
}
