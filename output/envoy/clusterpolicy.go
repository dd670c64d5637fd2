package envoy

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// leastRing is Istio's, of which a balancer by hash makes shares of the endpoints.
const leastRing = 1024

// mergeWindow is how often an Envoy at most has its workers follow ejections, after the
// first one. Its own second leaves them that long with endpoints that are known to fail;
// without any window each ejection of a large service would be work for all workers.
const mergeWindow = 100 * time.Millisecond

// policyOf is the policy of a host for the clients of a view.
func (v View) policyOf(host string) *policy.Policy {
	if v.settings == nil {
		return asIstio.Defaults
	}
	return v.settings.Of(host)
}

// policyFor is the policy of a host whose registry says something of affinity. What the
// configuration says of its load balancer counts before that.
func (v View) policyFor(host string, affinity model.Affinity) *policy.Policy {
	p, from := v.policyOf(host), v.settings
	if from == nil {
		from = asIstio
	}
	if affinity == model.ClientIP {
		return from.BySource(p)
	}
	return p
}

// limitsOf are what clients of all kinds stop at.
func limitsOf(p *policy.Policy) *clusterv3.CircuitBreakers {
	c := p.CircuitBreakers
	if c == nil {
		return noLimits()
	}
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     count(c.MaxConnections),
		MaxPendingRequests: count(c.MaxPendingRequests),
		MaxRequests:        count(c.MaxRequests),
		MaxRetries:         count(c.MaxRetries),
	}}}
}

// count writes a number that is validated.
func count(n int) *wrapperspb.UInt32Value { return wrapperspb.UInt32(uint32(n)) } //nolint:gosec // see above

// applyPolicy has a cluster of Envoys be as the policy says. Sockets says that some of its
// endpoints are unix sockets, which do not take the options of TCP.
func applyPolicy(p *policy.Policy, m *clusterv3.Cluster, sockets bool) {
	if p.ConnectTimeout != nil {
		m.ConnectTimeout = durationpb.New(*p.ConnectTimeout)
	}
	if m.GetLbPolicy() != clusterv3.Cluster_CLUSTER_PROVIDED {
		applyLoadBalancer(p.LoadBalancer, m)
	}
	applyOutlierDetection(p.OutlierDetection, m)
	if p.TCPKeepalive != nil && !sockets {
		m.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: keepaliveOption(p.TCPKeepalive)}
	}
}

func applyLoadBalancer(l *policy.LoadBalancer, m *clusterv3.Cluster) {
	switch {
	case l == nil:
	case l.ConsistentHash != nil:
		m.LbPolicy = clusterv3.Cluster_RING_HASH
		m.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{
			RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(leastRing)},
		}
	default:
		m.LbPolicy = clusterv3.Cluster_LbPolicy(clusterv3.Cluster_LbPolicy_value[l.Simple])
	}
}

// applyOutlierDetection sets every number: those of Envoy may change.
func applyOutlierDetection(o *policy.OutlierDetection, m *clusterv3.Cluster) {
	if o == nil {
		return
	}
	m.OutlierDetection = &clusterv3.OutlierDetection{
		Consecutive_5Xx:                    count(o.Consecutive5xxErrors),
		EnforcingConsecutive_5Xx:           enforced(o.Consecutive5xxErrors),
		ConsecutiveGatewayFailure:          count(o.ConsecutiveGatewayErrors),
		EnforcingConsecutiveGatewayFailure: enforced(o.ConsecutiveGatewayErrors),
		EnforcingSuccessRate:               wrapperspb.UInt32(0),
		Interval:                           durationpb.New(o.Interval),
		BaseEjectionTime:                   durationpb.New(o.BaseEjectionTime),
		MaxEjectionPercent:                 count(o.MaxEjectionPercent),
	}
	m.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: float64(o.MinHealthPercent)}
	m.CommonLbConfig.UpdateMergeWindow = durationpb.New(mergeWindow)
}

// enforced is the share of cases in which an endpoint is taken out that failed n times
// in a row. Envoy does not take zero for n.
func enforced(n int) *wrapperspb.UInt32Value {
	if n == 0 {
		return wrapperspb.UInt32(0)
	}
	return wrapperspb.UInt32(100)
}

func keepaliveOption(k *policy.TCPKeepalive) *corev3.TcpKeepalive {
	m := &corev3.TcpKeepalive{}
	if k.Probes > 0 {
		m.KeepaliveProbes = count(k.Probes)
	}
	if k.Time > 0 {
		m.KeepaliveTime = count(int(k.Time.Seconds()))
	}
	if k.Interval > 0 {
		m.KeepaliveInterval = count(int(k.Interval.Seconds()))
	}
	return m
}

// hashPolicy is what tells requests apart that go to different endpoints; nil if nothing
// does.
func hashPolicy(p *policy.Policy) []*routev3.RouteAction_HashPolicy {
	if p.LoadBalancer == nil || p.LoadBalancer.ConsistentHash == nil {
		return nil
	}
	by := &routev3.RouteAction_HashPolicy{}
	if name := p.LoadBalancer.ConsistentHash.HTTPHeaderName; name != "" {
		by.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: name}}
	} else {
		by.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
		}
	}
	return []*routev3.RouteAction_HashPolicy{by}
}

// tcpHashPolicy is hashPolicy for connections, which have no headers.
func tcpHashPolicy(p *policy.Policy) []*typev3.HashPolicy {
	if p.LoadBalancer == nil || p.LoadBalancer.ConsistentHash == nil || !p.LoadBalancer.ConsistentHash.UseSourceIP {
		return nil
	}
	return []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}}}}
}
