package envoy

import (
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// underSettings is the resource of a client in a world of one service h with the port 80
// of HTTP, under some settings.
func underSettings(t *testing.T, s *Translator, c world.Client, r world.Row, name string) proto.Message {
	t.Helper()
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, []model.Event{
		record("a", "p", model.Service{Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 80})}),
		place1("a", "p", "10.0.0.1"),
	})
	u := s.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system")
	c.Namespace = "a"
	subject, ok := u.World.Find(u.World.View(r, c), r, name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return message(t, subject.Encode().Joined().Body)
}

// everythingSaid are settings of which gRPC clients can do a part.
func everythingSaid() *Translator {
	timeout := 3 * time.Second
	s := NewTranslator()
	s.Defaults = policy.Policy{
		ConnectTimeout:   &timeout,
		LoadBalancer:     &policy.LoadBalancer{ConsistentHash: &policy.ConsistentHash{HTTPHeaderName: "x-user"}},
		Retries:          &policy.Retries{Attempts: 4, RetryOn: "5xx, unavailable,503,internal,504", PerTryTimeout: time.Second},
		OutlierDetection: &policy.OutlierDetection{Consecutive5xxErrors: 5, Interval: time.Second, BaseEjectionTime: time.Minute, MaxEjectionPercent: 50, MinHealthPercent: 20},
		CircuitBreakers:  &policy.CircuitBreakers{MaxConnections: 1, MaxPendingRequests: 2, MaxRequests: 3, MaxRetries: 4},
		TCPKeepalive:     &policy.TCPKeepalive{Probes: 9, Time: time.Minute, Interval: time.Second},
	}
	return s
}

func TestEnvoysAreGivenThePolicy(t *testing.T) {
	t.Parallel()
	c := underSettings(t, everythingSaid(), world.Client{Kind: reach.KindEnvoy}, ClusterType, "outbound|80||h").(*clusterv3.Cluster)
	limits, outliers, alive := c.GetCircuitBreakers().GetThresholds()[0], c.GetOutlierDetection(), c.GetUpstreamConnectionOptions().GetTcpKeepalive()
	got := []any{
		c.GetConnectTimeout().AsDuration(), c.GetLbPolicy(), c.GetRingHashLbConfig().GetMinimumRingSize().GetValue(),
		limits.GetMaxConnections().GetValue(), limits.GetMaxPendingRequests().GetValue(), limits.GetMaxRequests().GetValue(), limits.GetMaxRetries().GetValue(),
		outliers.GetConsecutive_5Xx().GetValue(), outliers.GetEnforcingConsecutive_5Xx().GetValue(), outliers.GetEnforcingConsecutiveGatewayFailure().GetValue(),
		outliers.GetInterval().AsDuration(), outliers.GetBaseEjectionTime().AsDuration(), outliers.GetMaxEjectionPercent().GetValue(),
		c.GetCommonLbConfig().GetHealthyPanicThreshold().GetValue(), c.GetCommonLbConfig().GetUpdateMergeWindow().AsDuration(),
		alive.GetKeepaliveProbes().GetValue(), alive.GetKeepaliveTime().GetValue(), alive.GetKeepaliveInterval().GetValue(),
	}
	want := []any{
		3 * time.Second, clusterv3.Cluster_RING_HASH, uint64(1024),
		uint32(1), uint32(2), uint32(3), uint32(4),
		uint32(5), uint32(100), uint32(0), time.Second, time.Minute, uint32(50), 20.0, 100 * time.Millisecond,
		uint32(9), uint32(60), uint32(1),
	}
	if !slices.Equal(got, want) {
		t.Errorf("the cluster has\n%v, want\n%v", got, want)
	}
	r := underSettings(t, everythingSaid(), world.Client{Kind: reach.KindEnvoy, Proxy: world.Proxy{Role: "sidecar"}}, RouteType, "80").(*routev3.RouteConfiguration)
	action := r.GetVirtualHosts()[0].GetRoutes()[0].GetRoute()
	tries := action.GetRetryPolicy()
	if tries.GetNumRetries().GetValue() != 4 || tries.GetRetryOn() != "5xx,unavailable,retriable-status-codes,internal" ||
		!slices.Equal(tries.GetRetriableStatusCodes(), []uint32{503, 504}) || tries.GetPerTryTimeout().AsDuration() != time.Second {
		t.Errorf("requests are tried again by %v", tries)
	}
	if header := action.GetHashPolicy()[0].GetHeader().GetHeaderName(); header != "x-user" {
		t.Errorf("requests are hashed by %q", header)
	}
}

// gRPC clients would eject endpoints by other rules, and NACK retries of no attempts.
func TestGRPCIsGivenWhatItReads(t *testing.T) {
	t.Parallel()
	client := world.Client{Kind: reach.KindGRPC}
	c := underSettings(t, everythingSaid(), client, ClusterType, "outbound|80||h").(*clusterv3.Cluster)
	if c.GetCircuitBreakers().GetThresholds()[0].GetMaxRequests().GetValue() != 3 {
		t.Errorf("its limits are %v", c.GetCircuitBreakers())
	}
	if c.GetOutlierDetection() != nil || c.GetUpstreamConnectionOptions() != nil || c.GetLbPolicy() != clusterv3.Cluster_ROUND_ROBIN {
		t.Errorf("its cluster is %v", c)
	}
	for on, want := range map[string]string{
		"5xx, unavailable,503,internal": "unavailable,internal", "5xx,503": "",
	} {
		s := everythingSaid()
		s.Defaults.Retries.RetryOn = on
		if got := retriesOfGRPC(t, s, client); got.GetRetryOn() != want || (got.GetNumRetries().GetValue() == 4) != (want != "") {
			t.Errorf("it tries again on %q by %v", on, got)
		}
	}
	none := everythingSaid()
	none.Defaults.Retries.Attempts = 0
	for _, s := range []*Translator{none, NewTranslator()} {
		if got := retriesOfGRPC(t, s, client); got != nil {
			t.Errorf("it tries again by %v", got)
		}
	}
}

func retriesOfGRPC(t *testing.T, s *Translator, c world.Client) *routev3.RetryPolicy {
	t.Helper()
	r := underSettings(t, s, c, RouteType, "outbound|80||h").(*routev3.RouteConfiguration)
	return r.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetRetryPolicy()
}

// A connection to no service goes to its original destination, or is dropped.
func TestOutboundSaysWhatBecomesOfTheRest(t *testing.T) {
	t.Parallel()
	for outbound, want := range map[string][]string{
		policy.AllowOutbound:    {names.BlackHole, names.Passthrough, names.Passthrough, "allow_any", "allow_any"},
		policy.RegistryOutbound: {names.BlackHole, names.BlackHole, names.BlackHole, "block_all", "block_all"},
	} {
		s := NewTranslator()
		s.Outbound = outbound
		client := world.Client{Kind: reach.KindEnvoy, Proxy: world.Proxy{Role: "sidecar"}}
		var got []string
		for _, name := range []string{names.VirtualOutbound, "0.0.0.0_80"} {
			l := underSettings(t, s, client, ListenerType, name).(*listenerv3.Listener)
			got = append(got, reachedThrough(l, wire.ClusterURL)...)
		}
		routes := []proto.Message{
			underSettings(t, s, client, RouteType, "80"), message(t, s.Types(nil)[RouteType].Empty("81").Joined().Body),
		}
		for _, r := range routes {
			hosts := r.(*routev3.RouteConfiguration).GetVirtualHosts()
			got = append(got, hosts[len(hosts)-1].GetName())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s leads to %v, want %v", outbound, got, want)
		}
	}
}

// Unix sockets do not take the options of TCP.
func TestKeepaliveIsNotOfSockets(t *testing.T) {
	t.Parallel()
	for socket, want := range map[string]bool{"10.0.0.1": true, "unix:///run/x.sock": false} {
		builder := catalog.NewBuilder(nil)
		builder.Apply(1, []model.Event{record("a", "p", model.Service{Ports: model.ListOf(ports[3])}), place1("a", "p", socket)})
		u := everythingSaid().Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system")
		v := u.World.View(ClusterType, world.Client{Kind: reach.KindEnvoy, Namespace: "a"})
		subject, _ := u.World.Find(v, ClusterType, "outbound|81||h")
		c := message(t, subject.Encode().Joined().Body).(*clusterv3.Cluster)
		if got := c.GetUpstreamConnectionOptions() != nil; got != want {
			t.Errorf("%s has options of TCP: %t", socket, got)
		}
	}
}

// Envoys at the edge have no listeners but those of the configuration.
func TestEdgeHasTheConfiguredPortsOnly(t *testing.T) {
	t.Parallel()
	client := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "router", Interception: "NONE", Outbound: world.AllPorts()}, Addresses: []string{"2001:db8::1"}}
	for _, edge := range [][]policy.EdgePort{nil, {{Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 9000, Protocol: policy.EdgeTCP, Hosts: []string{"*"}}}} {
		s := NewTranslator()
		s.Edge.Ports = edge
		u := s.Begin(nil)(catalog.Empty(), catalog.Change{}, true, "istio-system")
		listeners := slices.Collect(u.World.Names(u.World.View(ListenerType, client), ListenerType))
		routes := slices.Collect(u.World.Names(u.World.View(RouteType, client), RouteType))
		if edge == nil && len(listeners)+len(routes) > 0 {
			t.Errorf("it has %v and %v", listeners, routes)
		}
		if edge != nil && (!slices.Equal(listeners, []string{"::_8080", "::_9000"}) || !slices.Equal(routes, []string{"http.8080"})) {
			t.Errorf("it has %v and %v", listeners, routes)
		}
	}
}
