package wire

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// connectTimeout is that of Istio's mesh configuration.
const connectTimeout = 10 * time.Second

// Discovery is how a cluster finds its endpoints.
type Discovery uint8

// The ways.
const (
	EDS         Discovery = iota // load assignments
	StrictDNS                    // all addresses of every name
	LogicalDNS                   // the current address of one name
	OriginalDst                  // the original destination of the connection
)

// Cluster is a cluster of a service port, or of a subset of its endpoints.
type Cluster struct {
	Name            string
	Host, Namespace string
	GRPC            bool // it is for gRPC, and not for Envoys
	Discovery       Discovery
	Resolver        Resolver // of names, for Envoys
	Names           *Assignment
	PortOverride    uint32 // of OriginalDst; 0 for the original port
	HTTP            HTTPVersion
	External        bool // outside of the mesh
	Sockets         bool // some endpoints are unix sockets, without options of TCP
	Shares          bool // the weights of endpoints are shares of a split, to be met exactly
	Policy          *policy.Policy
	TLS             *TLS // nil for none
}

// Message returns the cluster.
func (c *Cluster) Message() *clusterv3.Cluster {
	m := c.common()
	if c.GRPC {
		c.completeForGRPC(m)
	} else {
		c.completeForEnvoy(m)
	}
	return m
}

func (c *Cluster) resolves() bool { return c.Discovery == StrictDNS || c.Discovery == LogicalDNS }

// common returns the part for all kinds of clients. Their default limit of 1,024 concurrent
// requests is lifted, as in Istio.
func (c *Cluster) common() *clusterv3.Cluster {
	m := &clusterv3.Cluster{
		Name:                          c.Name,
		ConnectTimeout:                durationpb.New(connectTimeout),
		TypedExtensionProtocolOptions: c.HTTP.options(),
		CircuitBreakers:               circuitBreakers(c.Policy),
	}
	if c.Discovery == EDS {
		setType(m, clusterv3.Cluster_EDS)
		m.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: fromADS()}
	}
	if c.resolves() {
		m.LoadAssignment = c.Names.Message()
	}
	return m
}

func noLimits() *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     unlimited(),
		MaxPendingRequests: unlimited(),
		MaxRequests:        unlimited(),
		MaxRetries:         unlimited(),
	}}}
}

// completeForGRPC adds gRPC's part. Every implementation has the policy ROUND_ROBIN without a
// switch.
func (c *Cluster) completeForGRPC(m *clusterv3.Cluster) {
	m.LbPolicy = clusterv3.Cluster_ROUND_ROBIN
	if c.Discovery == LogicalDNS {
		setType(m, clusterv3.Cluster_LOGICAL_DNS)
	}
}

// completeForEnvoy adds istiod's defaults for Envoys. A test compares them with istiod's own
// clusters, in testdata/istiod.
func (c *Cluster) completeForEnvoy(m *clusterv3.Cluster) {
	m.AltStatName = m.GetName() + ";" // statistics need the end of the name, which contains colons and dots
	m.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	// Unhealthy endpoints are left out of assignments. With a threshold, Envoy would use
	// endpoints that it found failing, once half of them fail.
	m.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: 0}}
	m.Metadata = c.telemetry()
	c.TLS.secure(m, c.HTTP)
	switch c.Discovery {
	case EDS:
		m.EdsClusterConfig.ServiceName = m.GetName()
		m.EdsClusterConfig.EdsConfig = awaited()
	case StrictDNS, LogicalDNS:
		c.Resolver.configure(m, c.Discovery == LogicalDNS)
	case OriginalDst:
		setType(m, clusterv3.Cluster_ORIGINAL_DST)
		m.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		c.redirect(m)
	}
	applyPolicy(c.Policy, m, c.Sockets)
	if p := m.GetLbPolicy(); c.Shares && (p == clusterv3.Cluster_LEAST_REQUEST || p == clusterv3.Cluster_RANDOM) {
		m.LbPolicy = clusterv3.Cluster_ROUND_ROBIN // it alone obeys weights exactly
	}
}

// redirect sets a target port that differs from the service's.
func (c *Cluster) redirect(m *clusterv3.Cluster) {
	if c.PortOverride == 0 {
		return
	}
	m.LbConfig = &clusterv3.Cluster_OriginalDstLbConfig_{
		OriginalDstLbConfig: &clusterv3.Cluster_OriginalDstLbConfig{UpstreamPortOverride: wrapperspb.UInt32(c.PortOverride)},
	}
}

// telemetry returns istiod's metadata about the service, for filters and access logs. The
// name of a ServiceEntry's service is its host.
func (c *Cluster) telemetry() *corev3.Metadata {
	service := fields(map[string]*structpb.Value{
		"host":      structpb.NewStringValue(c.Host),
		"name":      structpb.NewStringValue(c.Host),
		"namespace": structpb.NewStringValue(c.Namespace),
	})
	istio := map[string]*structpb.Value{
		"services": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(service)}}),
	}
	if c.External {
		istio["external"] = structpb.NewBoolValue(true)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": fields(istio)}}
}

func fields(of map[string]*structpb.Value) *structpb.Struct { return &structpb.Struct{Fields: of} }

func setType(m *clusterv3.Cluster, t clusterv3.Cluster_DiscoveryType) {
	m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: t}
}

func unlimited() *wrapperspb.UInt32Value { return wrapperspb.UInt32(1<<32 - 1) }
