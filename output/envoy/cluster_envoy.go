package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// completeForEnvoy adds what istiod gives an Envoy without any settings of the
// user. A test compares it with istiod's own clusters, in testdata/istiod.
func (c cluster) completeForEnvoy(m *clusterv3.Cluster) {
	m.AltStatName = m.GetName() + ";" // which tells statistics where the name ends, colons and dots included
	m.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	// Endpoints that should not serve are left out of assignments. Without this
	// Envoy would use those that it has itself found failing, once half of them are.
	m.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: 0}}
	m.Metadata = c.telemetry()
	c.secure(m)
	switch c.form {
	case eds:
		m.EdsClusterConfig.ServiceName = m.GetName()
		// To wait for ever is right: every assignment is answered, if only as empty.
		m.EdsClusterConfig.EdsConfig.InitialFetchTimeout = durationpb.New(0)
	case strictDNS, logicalDNS:
		c.resolver.configure(m, c.form == logicalDNS)
	case originalDST:
		setType(m, clusterv3.Cluster_ORIGINAL_DST)
		m.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		c.redirect(m)
	case noForm:
	}
	applyPolicy(c.policy, m, c.sockets)
}

// redirect honours a target port that differs from the service's.
func (c cluster) redirect(m *clusterv3.Cluster) {
	if c.target == 0 {
		return
	}
	m.LbConfig = &clusterv3.Cluster_OriginalDstLbConfig_{
		OriginalDstLbConfig: &clusterv3.Cluster_OriginalDstLbConfig{UpstreamPortOverride: wrapperspb.UInt32(c.target)},
	}
}

// telemetry says which service the cluster is, for filters and access logs that
// read what istiod writes: the name of a ServiceEntry's service is its host.
func (c cluster) telemetry() *corev3.Metadata {
	service := fields(map[string]*structpb.Value{
		"host":      structpb.NewStringValue(c.key.Host),
		"name":      structpb.NewStringValue(c.key.Host),
		"namespace": structpb.NewStringValue(c.key.Namespace),
	})
	said := map[string]*structpb.Value{
		"services": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(service)}}),
	}
	if c.external {
		said["external"] = structpb.NewBoolValue(true)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": fields(said)}}
}

func fields(of map[string]*structpb.Value) *structpb.Struct { return &structpb.Struct{Fields: of} }
