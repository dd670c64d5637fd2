package envoy

import (
	"slices"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// edgeService is a service of some age.
func edgeService(host string, age time.Duration, resolution model.Resolution, ports ...model.Port) model.Event {
	return model.Upsert{Record: model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "a", Name: host}},
		Spec: model.Service{
			Hosts: model.ListOf(host), Resolution: resolution, Ports: model.ListOf(ports...),
			Meta: model.Meta{Created: time.Unix(1_000_000_000, 0).Add(-age)},
		},
	}}
}

// The edge has each host once, and calls it at the port that fits best.
func TestEdgeChoosesHostsAndPorts(t *testing.T) {
	t.Parallel()
	on := func(number uint32, protocol string) model.Port {
		return model.Port{Number: number, Name: protocol + "-" + time.Duration(number).String(), Protocol: protocol, TargetPort: number}
	}
	static := model.ResolutionStatic
	builder := catalog.NewBuilderIn(dated("s", "first", "files"))
	builder.Apply(1, []model.Event{
		edgeService("same.com", 0, static, on(80, "HTTP"), on(8080, "GRPC")),
		edgeService("lowest.com", 0, static, on(70, "TCP"), on(9090, "HTTP2"), on(80, "HTTP")),
		edgeService("known.com", 0, static, on(60, ""), on(90, "HTTP")),
		edgeService("perhaps.com", 0, static, on(60, ""), on(443, "HTTPS")),
		edgeService("same-number.com", 0, static, on(80, "HTTP"), on(8080, "TCP")),
		edgeService("*.wild.com", 0, static, on(80, "HTTP")),
		edgeService("Twice.com.", time.Hour, static, on(81, "HTTP"), on(444, "TLS"), on(445, "TLS")),
		edgeService("none.com", 0, model.ResolutionNone, on(80, "HTTP"), on(9000, "TCP"), on(443, "TLS")),
		edgeService("old.com", time.Hour, static, on(9000, "TCP")),
		edgeService("older.com", 2*time.Hour, static, on(9000, "MONGO")),
	})
	s := NewTranslator()
	s.Edge.Ports = []policy.EdgePort{
		{Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}},
		{Number: 8443, Protocol: policy.EdgeTLS, Hosts: []string{"*"}},
		{Number: 9000, Protocol: policy.EdgeTCP, Hosts: []string{"Older.com"}},
		{Number: 9001, Protocol: policy.EdgeTCP, Hosts: []string{"older.com"}},
	}
	u := s.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system")
	client := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "router"}}
	find := func(r world.Row, name string) any {
		subject, ok := u.World.Find(u.World.View(r, client), r, name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		return message(t, subject.Encode().Joined().Body)
	}

	got := map[string]string{}
	for _, host := range find(RouteType, "http.8080").(*routev3.RouteConfiguration).GetVirtualHosts() {
		for _, domain := range host.GetDomains() {
			got[domain] = host.GetRoutes()[0].GetRoute().GetCluster()
		}
	}
	want := map[string]string{
		"same.com": "outbound|8080||same.com", "lowest.com": "outbound|80||lowest.com", "known.com": "outbound|90||known.com",
		"perhaps.com": "outbound|60||perhaps.com", "same-number.com": "outbound|80||same-number.com",
		"*.wild.com": "outbound|80||*.wild.com", "twice.com": "outbound|81||twice.com",
	}
	for domain, cluster := range want {
		if got[domain] != cluster || got[domain+"."] != cluster {
			t.Errorf("%s is called at %q and %q, want %q", domain, got[domain], got[domain+"."], cluster)
		}
	}
	if len(got) != 2*len(want) {
		t.Errorf("there are %v", got)
	}

	tls := find(ListenerType, "0.0.0.0_8443").(*listenerv3.Listener)
	if names := tls.GetFilterChains(); len(names) != 2 || !slices.Equal(names[0].GetFilterChainMatch().GetServerNames(), []string{"perhaps.com"}) {
		t.Errorf("handshakes are matched by %v", names)
	}
	for name, want := range map[string][]string{
		"0.0.0.0_8443": {"outbound|443||perhaps.com", "outbound|444||twice.com", names.BlackHole},
		"0.0.0.0_9000": {"outbound|9000||older.com"},
		"0.0.0.0_9001": {names.BlackHole},
	} {
		if to := reachedThrough(find(ListenerType, name).(*listenerv3.Listener), wire.ClusterURL); !slices.Equal(to, want) {
			t.Errorf("%s leads to %v, want %v", name, to, want)
		}
	}
}
