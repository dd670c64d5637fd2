package envoy

import (
	"fmt"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

func endpointsOf(host string, endpoints ...model.Endpoint) (list []model.Event) {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "a", Name: host}}
	for i, e := range endpoints {
		ref := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "s", Namespace: "a", Name: fmt.Sprintf("%s/%d", host, i)}}
		list = append(list, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
	}
	return list
}

func addressesIn(m *endpointv3.ClusterLoadAssignment) (list []string) {
	for _, locality := range m.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress()
			if pipe := address.GetPipe(); pipe != nil {
				list = append(list, pipe.GetPath())
				continue
			}
			list = append(list, fmt.Sprintf("%s:%d", address.GetSocketAddress().GetAddress(), address.GetSocketAddress().GetPortValue()))
		}
	}
	slices.Sort(list)
	return list
}

// An edge is given endpoints at local addresses only of hosts that no port exposes without
// allowing them, and none that leads back to itself. Others are given all of them.
func TestAnEdgeIsNotLedToItself(t *testing.T) {
	t.Parallel()
	on := func(host string, at ...model.Endpoint) []model.Event {
		resolution := model.ResolutionStatic
		if host == "dns.com" || host == "itself.com" {
			resolution = model.ResolutionDNSRoundRobin
		}
		return append([]model.Event{edgeService(host, 0, resolution, model.Port{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 80})}, endpointsOf(host, at...)...)
	}
	builder := catalog.NewBuilder(nil)
	for i, events := range [][]model.Event{
		on("plain.com", model.Endpoint{Address: "10.0.0.1"}),
		on("local.com", model.Endpoint{Address: "10.0.0.1"}, model.Endpoint{Address: "127.0.0.1"}, model.Endpoint{Address: "unix:///s"}, model.Endpoint{Address: "10.0.0.2", Also: model.ListOf("::1")}),
		on("allowed.com", model.Endpoint{Address: "127.0.0.1"}),
		on("both.com", model.Endpoint{Address: "127.0.0.1"}),
		on("loop.com", model.Endpoint{Address: "10.0.0.9"}, model.Endpoint{Address: "10.0.0.9", Ports: model.MapOf(map[string]uint32{"http": 8080})}, model.Endpoint{Address: "::ffff:10.0.0.9", Ports: model.MapOf(map[string]uint32{"http": 15000})}),
		on("dns.com", model.Endpoint{Address: "localhost"}),
		on("itself.com", model.Endpoint{Address: "10.0.0.9", Ports: model.MapOf(map[string]uint32{"http": 8081})}),
	} {
		builder.Apply(uint64(i+1), events) //nolint:gosec // few
	}
	s := NewTranslator()
	s.Edge.Ports = []policy.EdgePort{
		{Number: 8080, Protocol: policy.EdgeHTTP, LocalAddresses: policy.RejectLocal, Hosts: []string{"local.com", "plain.com", "both.com", "dns.com"}},
		{Number: 8081, Protocol: policy.EdgeHTTP, LocalAddresses: policy.AllowLocal, Hosts: []string{"allowed.com", "both.com"}},
	}
	u := s.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system")
	called := func(c world.Client, row world.Row, host string) []string {
		t.Helper()
		c.Kind, c.Namespace = reach.KindEnvoy, "a"
		subject, ok := u.World.Find(u.World.View(row, c), row, "outbound|80||"+host)
		if !ok {
			t.Fatalf("there is no cluster of %s", host)
		}
		switch m := message(t, subject.Encode().Joined().Body).(type) {
		case *endpointv3.ClusterLoadAssignment:
			return addressesIn(m)
		case *clusterv3.Cluster:
			return addressesIn(m.GetLoadAssignment())
		default:
			t.Fatalf("it is a %T", m)
			return nil
		}
	}
	atEdge := world.Client{Proxy: world.Proxy{Role: "router"}, Addresses: []string{"10.0.0.9", "fd00::9"}}
	for _, test := range []struct {
		host           string
		row            world.Row
		edge, sidecars []string
	}{
		{"plain.com", EndpointType, []string{"10.0.0.1:80"}, []string{"10.0.0.1:80"}},
		{"local.com", EndpointType, []string{"10.0.0.1:80"}, []string{"/s", "10.0.0.1:80", "10.0.0.2:80", "127.0.0.1:80"}},
		{"allowed.com", EndpointType, []string{"127.0.0.1:80"}, []string{"127.0.0.1:80"}},
		{"both.com", EndpointType, nil, []string{"127.0.0.1:80"}},
		{"loop.com", EndpointType, []string{"10.0.0.9:80"}, []string{"10.0.0.9:15000", "10.0.0.9:80", "10.0.0.9:8080"}},
		{"dns.com", ClusterType, nil, []string{"localhost:80"}},
		{"itself.com", ClusterType, nil, []string{"10.0.0.9:8081"}},
	} {
		if got := called(atEdge, test.row, test.host); !slices.Equal(got, test.edge) {
			t.Errorf("an edge calls %s at %v, want %v", test.host, got, test.edge)
		}
		if got := called(world.Client{Proxy: world.Proxy{Role: "sidecar"}, Addresses: []string{"10.0.0.9"}}, test.row, test.host); !slices.Equal(got, test.sidecars) {
			t.Errorf("a sidecar calls %s at %v, want %v", test.host, got, test.sidecars)
		}
	}
}

// What a port does not expose is not behind it, whatever the edge may see.
func TestAnEdgeExposesItsHosts(t *testing.T) {
	t.Parallel()
	http, tcp := model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 9000, Name: "tcp", Protocol: "TCP"}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, []model.Event{
		edgeService("a.shop.com", 0, model.ResolutionStatic, http), edgeService("B.Shop.com", 0, model.ResolutionStatic, http),
		edgeService("shop.com", 0, model.ResolutionStatic, http), edgeService("evilshop.com", 0, model.ResolutionStatic, http, tcp),
		edgeService("db.com", 0, model.ResolutionStatic, tcp), edgeService("*.com", 0, model.ResolutionStatic, http),
	})
	s := NewTranslator()
	s.Edge.Ports = []policy.EdgePort{{Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*.shop.com"}}, {Number: 9000, Protocol: policy.EdgeTCP, Hosts: []string{"db.com"}}}
	u := s.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system")
	client := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "router"}}
	for name, want := range map[world.Row][]string{RouteType: {"outbound|80||a.shop.com", "outbound|80||b.shop.com"}, ListenerType: {"outbound|9000||db.com"}} {
		resource := map[world.Row]string{RouteType: "http.8080", ListenerType: "0.0.0.0_9000"}[name]
		subject, ok := u.World.Find(u.World.View(name, client), name, resource)
		if !ok {
			t.Fatalf("there is no %s", resource)
		}
		got := slices.Sorted(subject.(world.Referrer).Refers(wire.ClusterURL))
		if !slices.Equal(got, want) {
			t.Errorf("%s leads to %v, want %v", resource, got, want)
		}
	}
}
