package envoy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// placed returns a service with endpoints in some locations.
func placed(host string, traffic model.Traffic, endpoints ...model.Endpoint) []model.Event {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: host}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts: model.ListOf(host), Ports: model.ListOf(ports[1]), Resolution: model.ResolutionStatic, Traffic: traffic,
	}}}}
	for _, e := range endpoints {
		ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
		ref.Name += "/" + e.Address
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
	}
	return events
}

func on(address, node, cluster string) model.Endpoint {
	e := model.Endpoint{Address: address, Node: node}
	if cluster != "" {
		e.Labels = model.MapOf(map[string]string{lb.ClusterLabel: cluster})
	}
	return e
}

// given returns the endpoints of a host that a client is sent, each with its priority.
func given(t interface{ Fatal(...any) }, w *World, c world.Client, host string) map[string]uint32 {
	subject, ok := w.Find(w.View(EndpointType, c), EndpointType, "outbound|80||"+host)
	if !ok {
		t.Fatal("there is no assignment of ", host)
	}
	cla := encoded(t, subject)
	if err := acceptable(cla); err != nil {
		t.Fatal(err, cla)
	}
	list := map[string]uint32{}
	for _, g := range cla.Endpoints {
		for _, e := range g.LbEndpoints {
			list[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()] = g.Priority
		}
	}
	return list
}

// A node-local service is called only on its node.
func TestNodeLocalServicesAreCalledOnTheNode(t *testing.T) {
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, placed("local.example", model.Traffic{NodeLocal: true},
		on("10.0.0.1", "node-1", ""), on("10.0.0.2", "node-1", "east"), on("10.0.0.3", "node-1", "west"), on("10.0.0.4", "node-2", "east"), on("10.0.0.5", "", "")))
	w := worldUnder(policy.Istio, builder.Snapshot(), true, "istio-system", nil)
	for name, test := range map[string]struct {
		client world.Client
		want   map[string]uint32
	}{
		"on a node of its cluster":      {world.Client{Node: "node-1", Cluster: "east"}, map[string]uint32{"10.0.0.1": 0, "10.0.0.2": 0}},
		"which does not say which":      {world.Client{Node: "node-1"}, map[string]uint32{"10.0.0.1": 0, "10.0.0.2": 0, "10.0.0.3": 0}},
		"on a node without an endpoint": {world.Client{Node: "node-3", Cluster: "east"}, map[string]uint32{}},
		"on no node":                    {world.Client{Cluster: "east"}, map[string]uint32{"10.0.0.5": 0}},
	} {
		for _, kind := range []string{reach.KindEnvoy, reach.KindGRPC} {
			test.client.Kind = kind
			if diff := gocmp.Diff(test.want, given(t, w, test.client, "local.example")); diff != "" {
				t.Errorf("%s, %s: -want +got:\n%s", name, kind, diff)
			}
		}
	}
}

// shared counts the equal properties that Istio compares for a preference, before the first
// that differs.
func shared(c world.Client, e model.Endpoint, prefer model.Preference) int {
	either := func(a, b string) bool { return a == b || a == "" || b == "" }
	same := []bool{either(c.Network, e.Network), c.Locality.Region == e.Locality.Region, c.Locality.Zone == e.Locality.Zone}
	if prefer == model.PreferSameNode {
		same = append(same, c.Locality.SubZone == e.Locality.SubZone, c.Node == e.Node)
	}
	if at := slices.Index(same, false); at >= 0 {
		return at
	}
	return len(same)
}

// A service that prefers near endpoints sends those that share more with a client before those
// that share less, at equal priority if they share as much. No endpoint is lost.
func TestPreferredEndpointsComeFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefer := rapid.SampledFrom([]model.Preference{model.PreferSameZone, model.PreferSameNode}).Draw(t, "prefer")
		endpoints := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.Endpoint {
			return model.Endpoint{
				Locality: drawLocality(t), Weight: rapid.Uint32Range(0, 2).Draw(t, "weight"),
				Network: rapid.SampledFrom([]string{"", "m", "n"}).Draw(t, "network"), Node: rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(t, "node"),
			}
		}), 1, 12).Draw(t, "endpoints")
		all := map[string]model.Endpoint{}
		for i := range endpoints {
			endpoints[i].Address = fmt.Sprintf("10.0.0.%d", i+1)
			all[endpoints[i].Address] = endpoints[i]
		}
		builder := catalog.NewBuilder(nil)
		builder.Apply(1, placed("near.example", model.Traffic{Prefer: prefer}, endpoints...))
		w := worldUnder(policy.Istio, builder.Snapshot(), true, "istio-system", nil)
		client := world.Client{
			Kind: rapid.SampledFrom([]string{reach.KindEnvoy, reach.KindGRPC}).Draw(t, "kind"), Locality: drawLocality(t), Node: rapid.SampledFrom([]string{"node-1", "node-3"}).Draw(t, "on"),
			Network: rapid.SampledFrom([]string{"", "m"}).Draw(t, "in"),
		}
		client.Locality.Region = cmp.Or(client.Locality.Region, "a") // a client without a locality has no preference
		got := given(t, w, client, "near.example")
		if len(got) != len(all) {
			t.Fatalf("%d of %d are given", len(got), len(all))
		}
		for a, first := range got {
			for b, second := range got {
				if byShared := cmp.Compare(shared(client, all[b], prefer), shared(client, all[a], prefer)); byShared != cmp.Compare(first, second) {
					t.Fatalf("%+v has priority %d, and %+v has %d, for %+v", all[a], first, all[b], second, client)
				}
			}
		}
	})
}

// The configured failover of a host overrides that of its registry.
func TestConfiguredFailoverCountsBeforeTheRegistrys(t *testing.T) {
	on, off, detection := true, false, &policy.OutlierDetection{}
	zone := &catalog.Definition{Traffic: model.Traffic{Prefer: model.PreferSameZone}, Resolution: model.ResolutionStatic}
	none := &catalog.Definition{Resolution: model.ResolutionStatic}
	for name, test := range map[string]struct {
		of     *catalog.Definition
		policy policy.Policy
		want   lb.Order
	}{
		"neither":                {none, policy.Policy{}, lb.Alike},
		"only the registry":      {zone, policy.Policy{}, lb.BySameZone},
		"with detection":         {zone, policy.Policy{OutlierDetection: detection}, lb.BySameZone},
		"turned off":             {zone, policy.Policy{OutlierDetection: detection, LocalityFailover: &off}, lb.Alike},
		"turned on":              {zone, policy.Policy{OutlierDetection: detection, LocalityFailover: &on}, lb.ByLocality},
		"only the configuration": {none, policy.Policy{OutlierDetection: detection}, lb.ByLocality},
	} {
		if got := lb.OrderOf(test.of, 80, &test.policy); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// Clients of one node share the bytes of services for which the node matters, and all
// clients those of any other. When the first such service comes, clients that are
// connected are sent the endpoints on their node, and nothing else.
func TestBytesAreSharedByNode(t *testing.T) {
	const clients, nodes = 40, 4
	synctest.Test(t, func(t *testing.T) {
		var encodings atomic.Int64
		e := push.New(push.Config{Workers: 1, Frame: func(world.Encoded) (heads [2][]byte) {
			encodings.Add(1)
			return heads
		}})
		p := e.Produce(Types(nil))
		ctx, end := context.WithCancel(t.Context())
		go e.Run(ctx)
		defer synctest.Wait()
		defer end()
		builder, revision := catalog.NewBuilder(nil), uint64(0)
		publish := func(events []model.Event) {
			revision++
			change := builder.Apply(revision, events)
			p.Publish(stepOf(policy.Istio, builder.Snapshot(), change, true, "istio-system", nil))
			synctest.Wait()
		}
		var endpoints []model.Endpoint
		for n := range nodes {
			endpoints = append(endpoints, on(fmt.Sprintf("10.0.0.%d", n+1), fmt.Sprintf("node-%d", n), ""))
		}
		publish(append(placed("local.example", model.Traffic{}, endpoints...), placed("plain.example", model.Traffic{}, endpoints...)...))
		var all []*push.Subscriber
		for n := range clients {
			all = append(all, e.Connect(push.Info{}, world.Client{Kind: reach.KindEnvoy, Node: fmt.Sprintf("node-%d", n%nodes)}))
			names := []string{"outbound|80||local.example", "outbound|80||plain.example"}
			if err := all[n].Request(session.Request{Type: p.Type(EndpointType), Mode: world.Delta, Subscribe: names}); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, want int64) {
			t.Helper()
			for range 2 {
				synctest.Wait()
				for _, client := range all {
					answerAll(client)
				}
			}
			if got := encodings.Swap(0); got != want {
				t.Errorf("%s is encoded %d times for %d clients, want %d", what, got, clients, want)
			}
		}
		expect("the first state", 2)
		publish(placed("local.example", model.Traffic{NodeLocal: true}, endpoints...))
		expect("a service that is now called on the node", nodes)
		publish(placed("plain.example", model.Traffic{}, append(endpoints, on("10.0.0.9", "node-1", ""))...))
		expect("another service", 1)
	})
}

// A service whose calls are alike by where they come from is balanced by that, for
// requests and for connections, of sidecars and of the edge; but for what is configured.
func TestAffinityIsByTheSourceOfCalls(t *testing.T) {
	events := placed("web.example", model.Traffic{Affinity: model.ClientIP}, on("10.0.0.1", "", ""), on("10.0.0.2", "", ""))
	service := events[0].(model.Upsert).Record
	spec, _ := service.Spec.(model.Service)
	spec.Ports = model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 81, Name: "tcp", Protocol: "TCP"})
	service.Spec = spec
	events[0] = model.Upsert{Record: service}
	s := NewTranslator()
	s.Unaddressed = policy.AllUnaddressed
	s.Edge.Ports = []policy.EdgePort{{Number: 80, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 81, Protocol: policy.EdgeTCP, Hosts: []string{"*"}}}
	configured := *s
	configured.Hosts = []policy.HostPolicy{{Host: "web.example", Policy: policy.Policy{LoadBalancer: &policy.LoadBalancer{Simple: "RANDOM"}}}}
	for name, test := range map[string]struct {
		settings *Translator
		traffic  model.Traffic
		want     bool
	}{
		"with affinity": {s, spec.Traffic, true}, "without": {s, model.Traffic{}, false}, "as configured": {&configured, spec.Traffic, false},
	} {
		spec.Traffic = test.traffic
		service.Spec = spec
		events[0] = model.Upsert{Record: service}
		builder := catalog.NewBuilder(nil)
		change := builder.Apply(1, events)
		w, _ := test.settings.Begin(nil)(builder.Snapshot(), change, true, "istio-system").World.(*World)
		text := func(role string, r world.Row, resource string) string {
			c := world.Client{Kind: reach.KindEnvoy, Namespace: "n", Addresses: []string{"10.9.0.1"}, Proxy: world.Proxy{Role: role}}
			subject, ok := w.Find(w.View(r, c), r, resource)
			if !ok {
				t.Fatalf("%s: there is no %s for a %s", name, resource, role)
			}
			return fmt.Sprint(message(t, subject.Encode().Joined().Body))
		}
		for resource, of := range map[string]struct {
			role, part string
			row        world.Row
		}{
			"outbound|80||web.example": {"sidecar", "RING_HASH", ClusterType},
			"outbound|81||web.example": {"sidecar", "RING_HASH", ClusterType},
			"80":                       {"sidecar", "source_ip", RouteType},
			"0.0.0.0_81":               {"sidecar", "source_ip", ListenerType},
			"http.80":                  {"router", "source_ip", RouteType},
		} {
			if got := strings.Contains(text(of.role, of.row, resource), of.part); got != test.want {
				t.Errorf("%s: %s of a %s has %s: %t", name, resource, of.role, of.part, got)
			}
		}
		if got := strings.Contains(text("router", ListenerType, "0.0.0.0_81"), "source_ip"); got != test.want {
			t.Errorf("%s: connections to the edge are balanced by their source: %t", name, got)
		}
	}
}
