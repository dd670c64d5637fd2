package envoy

import (
	"iter"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// connectTimeout is that of Istio's mesh configuration.
const connectTimeout = 10 * time.Second

// cluster is what a Cluster is made of. Of a STATIC service that is little: its
// endpoints arrive as a load assignment, so a change of them, which would make
// Envoy warm the cluster anew, is none of its business.
type cluster struct {
	clusterSlot
	speaks    httpVersion
	external  bool               // it is outside of the mesh
	target    uint32             // where originalDST goes instead of the original port; 0 if nowhere else
	endpoints *catalog.Endpoints // of DNS forms: the names are part of the cluster
	sockets   bool               // some endpoints are unix sockets; of what is not eds or does not matter, false
	policy    *policy.Policy
	order     order // of strictDNS
	affinity  model.Affinity

	tls        *policy.UpstreamTLS // nil for none
	identities string              // of which a certificate must have one, one a line
}

// clusterSlot tells the variants of a cluster apart.
type clusterSlot struct {
	slot
	grpc     bool
	resolver resolver // of DNS forms for Envoys
	// from and avoids are as in assignmentSlot: of strictDNS.
	from   standpoint
	avoids avoided
}

// Slot implements [push.Subject].
func (s clusterSlot) Slot() any { return s }

// clusterOf is the cluster for Envoys that say nothing of themselves.
func clusterOf(at slot, s *catalog.Service, port model.Port) cluster {
	c := cluster{clusterSlot: clusterSlot{slot: at}, speaks: httpVersionOf(port.Protocol), external: s.Location == model.MeshExternal, policy: asIstio.Defaults, affinity: s.Traffic.Affinity}
	switch at.form {
	case strictDNS, logicalDNS:
		c.endpoints = s.Endpoints(port.Number)
	case originalDST:
		if port.TargetPort != port.Number && !s.Traffic.ClusterLocal { // its address has the port of the service
			c.target = port.TargetPort
		}
	case eds:
		c.sockets = s.Endpoints(port.Number).Counts().Sockets > 0
	case noForm:
	}
	return c
}

func (c cluster) resolves() bool { return c.form == strictDNS || c.form == logicalDNS }

// Refers implements [push.Referrer].
func (c cluster) Refers(to string) iter.Seq[string] {
	if to == endpointURL && c.form == eds {
		return one(c.clusterName())
	}
	if to == secretURL {
		return c.tls.Secrets()
	}
	return nothing
}

// Encode implements [push.Subject].
func (c cluster) Encode() push.Encoded {
	m := c.common()
	if c.grpc {
		c.completeForGRPC(m)
	} else {
		c.completeForEnvoy(m)
	}
	return encode(m.GetName(), clusterURL, m)
}

// common is what all kinds of clients are given. All of them stop at 1,024
// requests under way unless set otherwise. Istio sets it, so nobody expects such a
// limit here.
func (c cluster) common() *clusterv3.Cluster {
	name := c.clusterName()
	m := &clusterv3.Cluster{
		Name:                          name,
		ConnectTimeout:                durationpb.New(connectTimeout),
		TypedExtensionProtocolOptions: c.speaks.options(),
		CircuitBreakers:               limitsOf(c.policy),
	}
	if c.form == eds {
		setType(m, clusterv3.Cluster_EDS)
		m.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: fromADS()}
	}
	if c.resolves() {
		m.LoadAssignment = c.names()
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

// completeForGRPC adds what gRPC needs. ROUND_ROBIN is the one policy that every
// implementation has without a switch.
func (c cluster) completeForGRPC(m *clusterv3.Cluster) {
	m.LbPolicy = clusterv3.Cluster_ROUND_ROBIN
	if c.form == logicalDNS {
		setType(m, clusterv3.Cluster_LOGICAL_DNS)
	}
}

// names are the endpoints of a DNS form.
func (c cluster) names() *endpointv3.ClusterLoadAssignment {
	m := &endpointv3.ClusterLoadAssignment{}
	d := &draft{name: c.clusterName(), of: c.subset, from: c.from, order: c.order, avoids: c.avoids, resolves: true}
	d.fill(c.endpoints, resolvable)
	if err := proto.Unmarshal(d.appendTo(nil), m); err != nil {
		panic(invariant(d.name, err))
	}
	return m
}

func setType(m *clusterv3.Cluster, t clusterv3.Cluster_DiscoveryType) {
	m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: t}
}

func unlimited() *wrapperspb.UInt32Value { return wrapperspb.UInt32(1<<32 - 1) }

// fromADS says that a resource comes over the stream that this one came over.
func fromADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}
