package wire

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// leastRing is Istio's minimum size of a hash ring.
const leastRing = 1024

// mergeWindow is the interval in which an Envoy merges ejections for its workers, after the
// first one. Its default of a second keeps failing endpoints in use that long. Without a
// window each ejection of a large service would be work for all workers.
const mergeWindow = 100 * time.Millisecond

// circuitBreakers returns the limits for clients of all kinds.
func circuitBreakers(p *policy.Policy) *clusterv3.CircuitBreakers {
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

// count wraps a validated number.
func count(n int) *wrapperspb.UInt32Value { return wrapperspb.UInt32(uint32(n)) } //nolint:gosec // see above

// applyPolicy applies a policy to a cluster of Envoys. With sockets, some endpoints are unix
// sockets, which reject the options of TCP.
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

// applyOutlierDetection sets every number, since Envoy's defaults may change.
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

// enforced is the percentage of ejections after n consecutive failures. Envoy rejects zero
// for n.
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

// hashPolicy returns the hash of requests for a consistent hash; nil without one.
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
