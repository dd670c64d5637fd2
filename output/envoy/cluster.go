package envoy

import (
	"iter"
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
)

// Defaults of Istio's mesh configuration.
const (
	connectTimeout = 10 * time.Second
	dnsRefreshRate = 60 * time.Second
)

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// cluster is what a Cluster is made of. Of a STATIC service that is little: its
// endpoints arrive as a load assignment, so a change of them, which would make
// Envoy warm the cluster anew, is none of its business.
type cluster struct {
	slot
	http2     bool
	target    uint32             // where originalDST goes instead of the original port; 0 if nowhere else
	endpoints *catalog.Endpoints // of DNS forms: the names are part of the cluster
}

func clusterOf(at slot, s *catalog.Service, port model.Port) cluster {
	c := cluster{slot: at, http2: speaksHTTP2(port.Protocol)}
	switch at.form {
	case strictDNS, logicalDNS:
		c.endpoints = s.Endpoints(port.Number)
	case originalDST:
		if port.TargetPort != port.Number {
			c.target = port.TargetPort
		}
	case noForm, eds:
	}
	return c
}

// Refers implements [push.Referrer].
func (c cluster) Refers(to string) iter.Seq[string] {
	if to == endpointURL && c.form == eds {
		return one(c.clusterName())
	}
	return none
}

// speaksHTTP2 names the protocols that Istio opens HTTP/2 connections for.
func speaksHTTP2(protocol string) bool {
	return protocol == "HTTP2" || protocol == "GRPC" || protocol == "GRPC-WEB"
}

// Encode implements [push.Subject].
func (c cluster) Encode() push.Encoded {
	name := c.clusterName()
	m := &clusterv3.Cluster{
		Name:           name,
		ConnectTimeout: durationpb.New(connectTimeout),
		LbPolicy:       clusterv3.Cluster_ROUND_ROBIN, // the one every gRPC implementation knows
		// Both kinds of client stop at 1,024 requests under way unless set
		// otherwise. Istio tells them, so nobody expects such a limit here.
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections:     wrapperspb.UInt32(math.MaxUint32),
			MaxPendingRequests: wrapperspb.UInt32(math.MaxUint32),
			MaxRequests:        wrapperspb.UInt32(math.MaxUint32),
			MaxRetries:         wrapperspb.UInt32(math.MaxUint32),
		}}},
	}
	switch c.form {
	case eds:
		setType(m, clusterv3.Cluster_EDS)
		m.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: fromADS()}
	case strictDNS:
		setType(m, clusterv3.Cluster_STRICT_DNS)
		c.resolve(m)
	case logicalDNS:
		setType(m, clusterv3.Cluster_LOGICAL_DNS)
		c.resolve(m)
	case originalDST:
		setType(m, clusterv3.Cluster_ORIGINAL_DST)
		m.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		c.redirect(m)
	case noForm:
	}
	if c.http2 {
		m.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptions: explicitHTTP2()}
	}
	return encode(name, clusterURL, m)
}

func setType(m *clusterv3.Cluster, t clusterv3.Cluster_DiscoveryType) {
	m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: t}
}

// resolve makes the cluster resolve its endpoints' names as Istio has it. What
// families of addresses the client itself has is not known, so IPv6 is
// resolved where there is no IPv4, for which Istio would need a setting.
func (c cluster) resolve(m *clusterv3.Cluster) {
	m.DnsLookupFamily = clusterv3.Cluster_V4_PREFERRED
	// The fields' successor is a cluster type that gRPC cannot read.
	m.RespectDnsTtl = true                            //nolint:staticcheck // see above
	m.DnsRefreshRate = durationpb.New(dnsRefreshRate) //nolint:staticcheck // see above
	m.LoadAssignment = &endpointv3.ClusterLoadAssignment{}
	d := newDraft(m.Name, c.endpoints, resolvable)
	if err := proto.Unmarshal(d.appendTo(nil), m.LoadAssignment); err != nil {
		panic(invariant(m.Name, err))
	}
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

// fromADS says that a resource comes over the stream that this one came over.
func fromADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func explicitHTTP2() *anypb.Any {
	return packed(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
				},
			},
		},
	})
}
