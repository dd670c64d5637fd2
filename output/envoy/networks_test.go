package envoy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// meshHost is one whose endpoints are called by TLS of the mesh.
func meshHost(host string) policy.HostPolicy {
	return policy.HostPolicy{Host: host, Policy: policy.Policy{TLS: &policy.UpstreamTLS{Mode: policy.IstioMutualTLS, CAFile: "/ca.crt", CertificateFile: "/tls.crt", KeyFile: "/tls.key"}}}
}

// acrossNetworks are settings with two networks that have gateways, and one without.
func acrossNetworks() *Translator {
	s := NewTranslator()
	s.Networks = []policy.Network{
		{Name: "n1", Gateways: []policy.Gateway{{Address: "192.0.2.1", Port: 15443}, {Address: "192.0.2.2", Port: 15443}}},
		{Name: "n2", Gateways: []policy.Gateway{{Address: "192.0.2.3", Port: 15443}, {Address: "192.0.2.4", Port: 15443}, {Address: "2001:db8::1", Port: 443}}},
		{Name: "n3"},
	}
	s.Hosts = []policy.HostPolicy{meshHost("mesh.example")}
	return s
}

// inNetworks is a service with endpoints in networks.
func inNetworks(host string, endpoints ...model.Endpoint) []model.Event {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: host}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts: model.ListOf(host), Ports: model.ListOf(ports[1]), Resolution: model.ResolutionStatic,
	}}}}
	for i, e := range endpoints {
		ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
		ref.Name += fmt.Sprint("/", i)
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
	}
	return events
}

func snapshotOf(events []model.Event) *catalog.Snapshot {
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	return builder.Snapshot()
}

// assigned is what a client is given of the endpoints of a host.
func assigned(t interface{ Fatal(...any) }, s *Translator, snapshot *catalog.Snapshot, host string, c world.Client) *endpointv3.ClusterLoadAssignment {
	w := worldUnder(s.Prepare(), snapshot, true, "istio-system", nil)
	subject, ok := w.Find(w.View(EndpointType, c), EndpointType, names.Cluster(host, 80))
	if !ok {
		t.Fatal("there is no assignment")
	}
	m, _ := message(t, subject.Encode().Joined().Body).(*endpointv3.ClusterLoadAssignment)
	return m
}

// byAddress is what each endpoint weighs. No address is there twice, and no weight is
// zero or more than clients take.
func byAddress(t interface{ Fatal(...any) }, m *endpointv3.ClusterLoadAssignment) map[string]uint32 {
	all, sum := map[string]uint32{}, uint64(0)
	for _, g := range m.GetEndpoints() {
		for _, e := range g.GetLbEndpoints() {
			at := e.GetEndpoint().GetAddress().GetSocketAddress()
			address := fmt.Sprint(at.GetAddress(), " ", at.GetPortValue())
			weight := e.GetLoadBalancingWeight().GetValue()
			if _, twice := all[address]; twice || weight == 0 {
				t.Fatal(address, "is there twice, or weighs nothing:", weight)
			}
			all[address] = weight
			sum += uint64(weight)
		}
	}
	if sum > math.MaxUint32 {
		t.Fatal("all weights together are", sum)
	}
	return all
}

// Endpoints of other networks are their gateways, each with an equal share of what they
// weigh. Those of the client's own network, of none and of one without gateways are
// themselves. Who cannot be led on by gateways is not given what is behind them.
func TestOtherNetworksAreTheirGateways(t *testing.T) {
	t.Parallel()
	endpoints := []model.Endpoint{
		{Address: "10.0.0.1", Network: "n1", Weight: 2},
		{Address: "10.0.0.2", Network: "n2"},
		{Address: "10.0.0.3", Network: "n2", Weight: 5},
		{Address: "10.0.0.4", Network: "n3"},
		{Address: "10.0.0.5"},
	}
	snapshot := snapshotOf(slices.Concat(inNetworks("mesh.example", endpoints...), inNetworks("plain.example", endpoints...)))
	direct := map[string]uint32{"10.0.0.4 80": 1, "10.0.0.5 80": 1}
	with := func(more map[string]uint32, scale uint32) map[string]uint32 {
		all := maps.Clone(more)
		for address, weight := range direct {
			all[address] = weight * scale
		}
		return all
	}
	for name, test := range map[string]struct {
		host   string
		client world.Client
		want   map[string]uint32
	}{
		"from n1": {"mesh.example", world.Client{Kind: reach.KindEnvoy, Network: "n1"}, with(map[string]uint32{
			"10.0.0.1 80": 6, "192.0.2.3 15443": 6, "192.0.2.4 15443": 6, "2001:db8::1 443": 6,
		}, 3)},
		"from n2": {"mesh.example", world.Client{Kind: reach.KindEnvoy, Network: "n2"}, with(map[string]uint32{
			"10.0.0.2 80": 2, "10.0.0.3 80": 10, "192.0.2.1 15443": 2, "192.0.2.2 15443": 2,
		}, 2)},
		"from n1 with IPv4 alone": {"mesh.example", world.Client{Kind: reach.KindEnvoy, Network: "n1", Addresses: []string{"10.1.0.1"}}, with(map[string]uint32{
			"10.0.0.1 80": 4, "192.0.2.3 15443": 6, "192.0.2.4 15443": 6,
		}, 2)},
		"from n2 with IPv6 alone": {"mesh.example", world.Client{Kind: reach.KindEnvoy, Network: "n2", Addresses: []string{"2001:db8::9"}}, with(map[string]uint32{
			"10.0.0.2 80": 1, "10.0.0.3 80": 5,
		}, 1)},
		"from a network that is not known": {"mesh.example", world.Client{Kind: reach.KindEnvoy}, with(map[string]uint32{
			"192.0.2.1 15443": 6, "192.0.2.2 15443": 6, "192.0.2.3 15443": 12, "192.0.2.4 15443": 12, "2001:db8::1 443": 12,
		}, 6)},
		"without TLS":   {"plain.example", world.Client{Kind: reach.KindEnvoy, Network: "n1"}, with(map[string]uint32{"10.0.0.1 80": 2}, 1)},
		"gRPC":          {"mesh.example", world.Client{Kind: reach.KindGRPC, Network: "n1"}, with(map[string]uint32{"10.0.0.1 80": 2}, 1)},
		"gRPC, unknown": {"mesh.example", world.Client{Kind: reach.KindGRPC}, with(map[string]uint32{}, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := gocmp.Diff(test.want, byAddress(t, assigned(t, acrossNetworks(), snapshot, test.host, test.client))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	service, _ := snapshot.Resolve(catalog.Viewer{}, "plain.example")
	said := acrossNetworks().NotOffered()
	want := "port 80: 3 of the endpoints are given to no client of another network: "
	if got := said(service, reach.KindEnvoy); got != want+plainTraffic {
		t.Errorf("of Envoys it is said: %s", got)
	}
	if got := said(service, reach.KindGRPC); got != want+grpcNetwork {
		t.Errorf("of gRPC it is said: %s", got)
	}
	if service, _ = snapshot.Resolve(catalog.Viewer{}, "mesh.example"); said(service, reach.KindEnvoy) != "" {
		t.Error("something is said of a host that gateways lead to")
	}
}

// Several networks have one address. Who is in one of them reaches its own endpoint there, and the others by
// their gateways. An assignment has the address once: of endpoints to which no gateway leads, the first.
func TestNetworksMayHaveOneAddress(t *testing.T) {
	t.Parallel()
	endpoints := []model.Endpoint{
		{Address: "10.0.0.1", Network: "n4", Weight: 2},
		{Address: "10.0.0.1", Network: "n1", Weight: 3},
		{Address: "10.0.0.1", Network: "n2", Weight: 5},
		{Address: "10.0.0.1", Network: "n3", Weight: 7},
		{Address: "10.0.0.1", Network: "n1", Weight: 11, Health: model.Unhealthy}, // it does not speak
		{Network: "n2", Weight: 13},
		{Network: "n2", Weight: 17},
		{Network: "n3", Weight: 19},
	}
	snapshot := snapshotOf(slices.Concat(inNetworks("mesh.example", endpoints...), inNetworks("plain.example", endpoints...)))
	client := func(kind, network string) world.Client { return world.Client{Kind: kind, Network: network} }
	for name, test := range map[string]struct {
		settings *Translator
		host     string
		client   world.Client
		want     map[string]uint32
	}{
		"from n1": {acrossNetworks(), "mesh.example", client(reach.KindEnvoy, "n1"), map[string]uint32{
			"10.0.0.1 80": 9, "192.0.2.3 15443": 35, "192.0.2.4 15443": 35, "2001:db8::1 443": 35,
		}},
		"from n2": {acrossNetworks(), "mesh.example", client(reach.KindEnvoy, "n2"), map[string]uint32{
			"10.0.0.1 80": 10, "192.0.2.1 15443": 3, "192.0.2.2 15443": 3,
		}},
		"from n3": {acrossNetworks(), "mesh.example", client(reach.KindEnvoy, "n3"), map[string]uint32{
			"10.0.0.1 80": 12, "192.0.2.1 15443": 9, "192.0.2.2 15443": 9, "192.0.2.3 15443": 70, "192.0.2.4 15443": 70, "2001:db8::1 443": 70,
		}},
		"without TLS":         {acrossNetworks(), "plain.example", client(reach.KindEnvoy, "n2"), map[string]uint32{"10.0.0.1 80": 5}},
		"gRPC":                {acrossNetworks(), "mesh.example", client(reach.KindGRPC, "n1"), map[string]uint32{"10.0.0.1 80": 3}},
		"gRPC, elsewhere":     {acrossNetworks(), "mesh.example", client(reach.KindGRPC, "n4"), map[string]uint32{"10.0.0.1 80": 2}},
		"without any gateway": {NewTranslator(), "mesh.example", client(reach.KindEnvoy, "n3"), map[string]uint32{"10.0.0.1 80": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := gocmp.Diff(test.want, byAddress(t, assigned(t, test.settings, snapshot, test.host, test.client))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	const (
		eclipsed  = "another endpoint has its address and port, and its own network needs a gateway: name one in networks of outputs.xds.envoy"
		noGateway = "it has no address, and its network needs a gateway: name one in networks of outputs.xds.envoy"
	)
	service, _ := snapshot.Resolve(catalog.Viewer{}, "mesh.example")
	for name, test := range map[string]struct {
		settings *Translator
		want     map[string]string // by network, and address if there is one
	}{
		"with gateways": {acrossNetworks(), map[string]string{"n3 10.0.0.1": eclipsed, "n3 ": noGateway}},
		"without": {NewTranslator(), map[string]string{
			"n1 10.0.0.1": eclipsed, "n2 10.0.0.1": eclipsed, "n3 10.0.0.1": eclipsed, "n2 ": noGateway, "n3 ": noGateway,
		}},
	} {
		got := map[string]string{}
		for id, reason := range reach.Unserved(service, test.settings.Prepare().Networks) {
			address, _, _ := strings.Cut(id.Address, "@")
			got[id.Network+" "+address] = reason
		}
		if diff := gocmp.Diff(test.want, got); diff != "" {
			t.Errorf("unserved %s: -want +got:\n%s", name, diff)
		}
	}
}

// Whatever weights, networks and localities endpoints have, the direct ones are those of
// before, and what a network weighs beside them is what its endpoints weigh.
func TestGatewaysWeighWhatTheyLeadTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := acrossNetworks()
		for n := range s.Networks {
			s.Networks[n].Gateways = nil
			for g := range rapid.IntRange(0, 6).Draw(t, "gateways") {
				s.Networks[n].Gateways = append(s.Networks[n].Gateways, policy.Gateway{Address: fmt.Sprintf("192.0.2.%d", 10*n+g), Port: 15443})
			}
		}
		own := rapid.SampledFrom([]string{"", "n1", "n2", "n4"}).Draw(t, "own")
		most := rapid.SampledFrom([]uint32{3, 1000, math.MaxUint32}).Draw(t, "most")
		var endpoints []model.Endpoint
		direct, foreign := map[string]uint64{}, make([]uint64, len(s.Networks))
		for i := range rapid.IntRange(1, 40).Draw(t, "endpoints") {
			in := rapid.IntRange(-1, 3).Draw(t, "network")
			e := model.Endpoint{
				Address: fmt.Sprintf("10.0.0.%d", i), Weight: rapid.Uint32Range(0, most).Draw(t, "weight"),
				Locality: model.Locality{Region: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")},
			}
			if in >= 0 {
				e.Network = fmt.Sprint("n", in+1)
			}
			endpoints = append(endpoints, e)
			if in >= 0 && in < len(s.Networks) && len(s.Networks[in].Gateways) > 0 && e.Network != own {
				foreign[in] += uint64(max(e.Weight, 1))
			} else {
				direct[e.Address+" 80"] = uint64(max(e.Weight, 1))
			}
		}
		m := assigned(t, s, snapshotOf(inNetworks("mesh.example", endpoints...)), "mesh.example", world.Client{Kind: reach.KindEnvoy, Network: own})
		got := byAddress(t, m)
		type share struct{ want, got float64 }
		var shares []share
		var all share
		take := func(want float64, got uint32) {
			if got == 0 {
				t.Fatal("something is missing")
			}
			shares = append(shares, share{want, float64(got)})
			all.want, all.got = all.want+want, all.got+float64(got)
		}
		count := len(direct)
		for address, weight := range direct {
			take(float64(weight), got[address])
		}
		for n, weight := range foreign {
			for _, g := range s.Networks[n].Gateways {
				if weight > 0 {
					take(float64(weight)/float64(len(s.Networks[n].Gateways)), got[g.Address+" 15443"])
					count++
				}
			}
		}
		if len(got) != count {
			t.Fatalf("%d endpoints, want %d: %v", len(got), count, got)
		}
		exact := all.want*60 < math.MaxUint32-100 // 60 is the most that weights are multiplied by
		for _, one := range shares {
			want, got := one.want/all.want, one.got/all.got
			if exact && math.Abs(want-got) > 1e-9 || math.Abs(want-got) > 0.01 {
				t.Fatalf("a share is %v, want %v", got, want)
			}
		}
	})
}

// Gateways lead to no service outside of the mesh, so no client is given one for it.
func TestNoGatewayStandsForWhatIsOutsideOfTheMesh(t *testing.T) {
	t.Parallel()
	s := acrossNetworks()
	gateway := world.Client{Kind: reach.KindEnvoy, Network: "n2", Proxy: world.Proxy{Role: "router"}}
	s.Edge.Ports = []policy.EdgePort{{Number: 15443, Protocol: policy.EdgeAutoPassthrough, Hosts: []string{"*"}}}
	for location, led := range map[model.Location]bool{model.MeshInternal: true, model.MeshExternal: false} {
		events := inNetworks("mesh.example", model.Endpoint{Address: "10.0.0.1", Network: "n1"}, model.Endpoint{Address: "10.0.0.2", Network: "n2"})
		owner, _ := events[0].(model.Upsert)
		spec, _ := owner.Record.Spec.(model.Service)
		spec.Location = location
		owner.Record.Spec = spec
		events[0] = owner
		snapshot := snapshotOf(events)
		_, given := byAddress(t, assigned(t, s, snapshot, "mesh.example", world.Client{Kind: reach.KindEnvoy, Network: "n1"}))["192.0.2.3 15443"]
		w := worldUnder(s.Prepare(), snapshot, true, "istio-system", nil)
		entered := slices.Contains(slices.Collect(w.Names(w.View(ClusterType, gateway), ClusterType)), "outbound_.80_._.mesh.example")
		service, _ := snapshot.Resolve(catalog.Viewer{}, "mesh.example")
		said := s.NotOffered()(service, reach.KindEnvoy)
		if given != led || entered != led || (said == "") != led {
			t.Errorf("%s: a gateway is given: %t, it leads on: %t, want %t; it is said: %q", location, given, entered, led, said)
		}
	}
}

// A gateway is given once, in the nearest place that it leads to.
func TestAGatewayIsAsNearAsTheNearestThatItLeadsTo(t *testing.T) {
	t.Parallel()
	in := func(address, region, network string) model.Endpoint {
		return model.Endpoint{Address: address, Network: network, Locality: model.Locality{Region: region}}
	}
	s := acrossNetworks()
	s.Hosts[0].OutlierDetection = &policy.OutlierDetection{}
	snapshot := snapshotOf(inNetworks("mesh.example", in("10.0.0.1", "eu", "n2"), in("10.0.0.2", "us", "n1"), in("10.0.0.3", "us", "n2"), in("10.0.0.4", "asia", "n2")))
	client := world.Client{Kind: reach.KindEnvoy, Network: "n1", Locality: model.Locality{Region: "us"}}
	m := assigned(t, s, snapshot, "mesh.example", client)
	got := byAddress(t, m)
	if len(m.GetEndpoints()) != 1 || m.GetEndpoints()[0].GetLocality().GetRegion() != "us" || len(got) != 4 {
		t.Errorf("the endpoints are %v", m.GetEndpoints())
	}
	if got["10.0.0.2 80"] != 3 || got["192.0.2.3 15443"] != 1 {
		t.Errorf("the weights are %v", got)
	}
}

// A client's network is part of a view only if networks are configured, and of an
// assignment only if an endpoint says that it is in one.
func TestAssignmentsAreSharedByNetwork(t *testing.T) {
	t.Parallel()
	snapshot := snapshotOf(slices.Concat(inNetworks("mesh.example", model.Endpoint{Address: "10.0.0.1", Network: "n1"}), inNetworks("plain.example", model.Endpoint{Address: "10.0.0.1"})))
	at := func(network string) world.Client { return world.Client{Kind: reach.KindEnvoy, Network: network} }
	for r := range resourceTypes() {
		for name, s := range map[string]*Translator{"networks": acrossNetworks(), "none": NewTranslator()} {
			w := worldUnder(s.Prepare(), snapshot, true, "istio-system", nil)
			differs := w.View(world.Row(r), at("n1")) != w.View(world.Row(r), at("n2"))
			if want := name == "networks" && world.Row(r) == EndpointType; differs != want {
				t.Errorf("with %s, the view of %s differs by network: %t", name, resourceTypes()[r].Name, differs)
			}
		}
	}
	w := worldUnder(acrossNetworks().Prepare(), snapshot, true, "istio-system", nil)
	slotFor := func(host, network string) any {
		subject, _ := w.Find(w.View(EndpointType, at(network)), EndpointType, names.Cluster(host, 80))
		return subject.Slot()
	}
	if slotFor("plain.example", "n1") != slotFor("plain.example", "n2") {
		t.Error("a service outside of all networks differs by network")
	}
	if slotFor("mesh.example", "n1") == slotFor("mesh.example", "n2") || slotFor("mesh.example", "n3") != slotFor("mesh.example", "anything") {
		t.Error("networks with gateways do not differ, or others do")
	}
}

// Names are not looked up behind gateways: every client of a DNS service has the first of several endpoints at
// an address, and gRPC, which resolves one name, is offered the service.
func TestNamesOfOneAddressAreOne(t *testing.T) {
	t.Parallel()
	events := inNetworks("mesh.example", model.Endpoint{Address: "10.0.0.1", Network: "n1"}, model.Endpoint{Address: "10.0.0.1", Network: "n3"})
	service := events[0].(model.Upsert)
	spec, _ := service.Record.Spec.(model.Service)
	spec.Resolution = model.ResolutionDNS
	service.Record.Spec = spec
	events[0] = service
	made, _ := snapshotOf(events).Resolve(catalog.Viewer{}, "mesh.example")
	unserved := map[string]string{}
	for id, reason := range reach.Unserved(made, acrossNetworks().Prepare().Networks) {
		unserved[id.Network] = reason
	}
	if diff := gocmp.Diff(map[string]string{"n3": "another endpoint has its address and port"}, unserved); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if reason := reach.NotOffered(made, reach.KindGRPC); reason != "" {
		t.Errorf("gRPC is not offered it: %s", reason)
	}
}

// A change may decide which of two endpoints at one address clients are given, and concern neither of
// them: a new order of sources does. A subset has the other one then, as has a listener at the instance.
func TestAnotherEndpointOfAnAddressIsNoticed(t *testing.T) {
	t.Parallel()
	at := func(network string, h model.Health, tls string) model.Endpoint {
		return model.Endpoint{Address: "10.0.0.1", Network: network, Health: h, Labels: model.MapOf(map[string]string{"version": "v1", "security.istio.io/tlsMode": tls})}
	}
	by := func(source string, endpoints ...model.Endpoint) []model.Event {
		events := inNetworks("x.com", endpoints...)
		for i, event := range events {
			record := event.(model.Upsert).Record
			if record.Source = source; i > 0 {
				record.Owner.Source = source
			} else {
				spec, _ := record.Spec.(model.Service)
				spec.Ports = model.ListOf(model.Port{Number: 80, Name: "tcp", Protocol: "TCP"})
				record.Spec = spec
			}
			events[i] = model.Upsert{Record: record}
		}
		return events
	}
	s := NewTranslator()
	s.MTLS = policy.MTLS{Mode: policy.PermissiveMTLS}
	s.Hosts = []policy.HostPolicy{{Host: "x.com", Subsets: []policy.Subset{{Name: "v1", Labels: map[string]string{"version": "v1"}}}}}
	prepared := s.Prepare()
	ranked := slices.Concat(by("first"), by("second", at("n1", model.Healthy, "istio")), by("third", at("n3", model.Healthy, "")))
	reload := func(b *catalog.Builder) catalog.Change {
		return b.Arrange(catalog.Order{Sources: []string{"first", "third", "second"}})
	}
	for name, test := range map[string]struct {
		before []model.Event
		change func(*catalog.Builder) catalog.Change
		row    world.Row
		want   string
	}{
		"a new order of sources, in a subset": {ranked, reload, EndpointType, names.Subset("x.com", 80, "v1")},
		"a new order of sources":              {ranked, reload, ListenerType, names.Socket("10.0.0.1", 80)},
		"health": {
			by("first", at("n1", model.Healthy, "istio"), at("n3", model.Healthy, "")),
			func(b *catalog.Builder) catalog.Change {
				return b.Apply(2, by("first", at("n1", model.Unhealthy, "istio"), at("n3", model.Healthy, "")))
			},
			ListenerType, names.Socket("10.0.0.1", 80),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := catalog.NewBuilder([]string{"first", "second", "third"})
			builder.Apply(1, test.before)
			change := test.change(builder)
			changes := changesOf(prepared, builder.Snapshot(), change)
			if !slices.ContainsFunc(changes, func(c world.Changed) bool { return c.Row == test.row && c.Name == test.want }) {
				t.Errorf("%s is not among %v", test.want, changes)
			}
		})
	}
}

// Envoys say what they want to reach as Istio's do.
func TestWorkloadsOfAMeshAreCalledAsIstioCallsThem(t *testing.T) {
	t.Parallel()
	u := meshHost("api.example").TLS
	m := tlsOf(t, clusterFor(t, securedWorld(u, nil, "web"), reach.KindEnvoy))
	if want := []string{"istio", "h2"}; m.Sni != "outbound_.80_._.api.example" || !slices.Equal(m.GetCommonTlsContext().GetAlpnProtocols(), want) {
		t.Errorf("the name is %q, the protocols are %v", m.Sni, m.GetCommonTlsContext().GetAlpnProtocols())
	}
	if diff := gocmp.Diff([]string{"URI spiffe://cluster.local/ns/n/sa/web"}, demanded(m)); diff != "" || len(m.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs()) != 1 {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := demanded(tlsOf(t, clusterFor(t, securedWorld(u, nil, ""), reach.KindEnvoy))); len(got) != 0 {
		t.Errorf("without an account, %v is demanded", got)
	}
	for host, want := range map[string]string{"a.example": "outbound_.80_.v1_.a.example", "*.example": "", string(make([]byte, 300)): ""} {
		if got, ok := names.Mesh(host, 80, "V1"); got != want || ok != (want != "") {
			t.Errorf("%q is called %q", host, got)
		}
	}
}
