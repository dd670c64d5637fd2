package envoy

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// serviceOf returns a STATIC service of one port with those endpoints.
func serviceOf(endpoints ...model.Endpoint) *catalog.Service {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "n", Name: "svc"}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts:      model.ListOf("svc.n"),
		Ports:      model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		Resolution: model.ResolutionStatic,
	}}}}
	for i, e := range endpoints {
		ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
		ref.Name += "/" + strconv.Itoa(i)
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	s, _ := builder.Snapshot().Service(catalog.ServiceKey{Namespace: "n", Host: "svc.n"})
	return s
}

// ordinary builds a load assignment the usual way, from messages. It knows
// nothing of scaling weights.
func ordinary(name string, endpoints *catalog.Endpoints) *endpointv3.ClusterLoadAssignment {
	groups := map[model.Locality]*endpointv3.LocalityLbEndpoints{}
	seen := map[string]bool{}
	for e := range endpoints.All() {
		address, left := reach.IPAddress(e)
		if e.Health != model.Healthy || left != "" {
			continue
		}
		at := fmt.Sprint(address, e.Port)
		if seen[at] {
			continue
		}
		seen[at] = true
		g := groups[e.Locality]
		if g == nil {
			l := e.Locality
			g = &endpointv3.LocalityLbEndpoints{
				Locality:            &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
				LoadBalancingWeight: wrapperspb.UInt32(0),
			}
			groups[l] = g
		}
		weight := max(e.Weight, 1)
		g.LoadBalancingWeight.Value += weight
		place := &endpointv3.Endpoint{Address: addressOf(address, e.Port)}
		for text := range e.Also.All() {
			if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" && e.Port != 0 {
				place.AdditionalAddresses = append(place.AdditionalAddresses, &endpointv3.Endpoint_AdditionalAddress{Address: addressOf(ip.Unmap().String(), e.Port)})
			}
		}
		g.LbEndpoints = append(g.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: place},
			LoadBalancingWeight: wrapperspb.UInt32(weight),
		})
	}
	leaveOutTwins(groups, seen)
	cla := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for _, g := range groups {
		cla.Endpoints = append(cla.Endpoints, g)
	}
	slices.SortFunc(cla.Endpoints, func(a, b *endpointv3.LocalityLbEndpoints) int {
		x, y := localityOf(a.Locality), localityOf(b.Locality)
		return lb.CompareLocalities(&x, &y)
	})
	return cla
}

// leaveOutTwins leaves out further addresses that another endpoint has, or one with a
// lower address.
func leaveOutTwins(groups map[model.Locality]*endpointv3.LocalityLbEndpoints, seen map[string]bool) {
	var all []*endpointv3.Endpoint
	for _, g := range groups {
		for _, e := range g.LbEndpoints {
			all = append(all, e.GetEndpoint())
		}
	}
	at := func(a *corev3.Address) string {
		return fmt.Sprint(a.GetSocketAddress().GetAddress(), a.GetSocketAddress().GetPortValue())
	}
	slices.SortFunc(all, func(a, b *endpointv3.Endpoint) int {
		x, y := a.GetAddress().GetSocketAddress(), b.GetAddress().GetSocketAddress()
		return cmp.Or(cmp.Compare(x.GetAddress(), y.GetAddress()), cmp.Compare(x.GetPortValue(), y.GetPortValue()))
	})
	for _, e := range all {
		e.AdditionalAddresses = slices.DeleteFunc(e.AdditionalAddresses, func(a *endpointv3.Endpoint_AdditionalAddress) bool {
			is := seen[at(a.Address)]
			seen[at(a.Address)] = true
			return is
		})
	}
}

func localityOf(l *corev3.Locality) model.Locality {
	return model.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
}

func addressOf(address string, port uint32) *corev3.Address {
	if port == 0 {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: address}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func assignmentOf(t interface{ Fatal(...any) }, s *catalog.Service) *endpointv3.ClusterLoadAssignment {
	e := assignment{assignmentSlot: assignmentSlot{slot: slot{row: EndpointType, key: s.Key, port: 80}}, endpoints: s.Endpoints(80)}.Encode()
	if cap(e.Body) != len(e.Body) {
		t.Fatal("the body was not made at its exact size: ", len(e.Body), " of ", cap(e.Body))
	}
	cla, ok := message(t, e.Body).(*endpointv3.ClusterLoadAssignment)
	if !ok || cla.ClusterName != e.Name {
		t.Fatal("the body is not the assignment ", e.Name)
	}
	return cla
}

// endpoints draws addresses of every sort, from few enough to collide.
func endpoints() *rapid.Generator[model.Endpoint] {
	address := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 30), func(n int) string { return fmt.Sprintf("10.0.0.%d", n) }),
		rapid.Map(rapid.IntRange(0, 5), func(n int) string { return fmt.Sprintf("fd00::%x", n) }),
		rapid.Map(rapid.IntRange(0, 5), func(n int) string { return fmt.Sprintf("FD00:0:0:0::%04X", n) }),
		rapid.SampledFrom([]string{"unix:///run/a", "unix://@b", "unix://", "::ffff:10.0.0.1", "fe80::1%eth0", "name.example.com", "", "10.0.0.256"}),
	)
	return rapid.Custom(func(t *rapid.T) model.Endpoint {
		e := model.Endpoint{
			Address: address.Draw(t, "address"),
			Locality: model.Locality{
				Region: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region"),
				Zone:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"),
			},
			Weight: rapid.SampledFrom([]uint32{0, 1, 2, 127, 128, 1 << 20}).Draw(t, "weight"),
			Also:   model.ListOf(rapid.SliceOfN(address, 0, rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "most")).Draw(t, "also")...),
			Health: rapid.SampledFrom([]model.Health{model.Healthy, model.Healthy, model.Healthy, model.Unhealthy, model.Draining}).Draw(t, "health"),
		}
		if port := rapid.SampledFrom([]uint32{0, 0, 1, 127, 128, 65535, 65536}).Draw(t, "port"); port != 0 {
			e.Ports = model.MapOf(map[string]uint32{"http": port})
		}
		return e
	})
}

func TestAssignmentsAreWhatMessagesWouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := serviceOf(rapid.SliceOfN(endpoints(), 0, 40).Draw(t, "endpoints")...)
		got, want := assignmentOf(t, s), ordinary("outbound|80||svc.n", s.Endpoints(80))
		sortPlaces(want)
		sortPlaces(got)
		if diff := gocmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Fatalf("-ordinary +by hand:\n%s", diff)
		}
	})
}

// sortPlaces orders by address: the catalog's order, which the messages were
// built in, is that of the addresses as written.
func sortPlaces(cla *endpointv3.ClusterLoadAssignment) {
	for _, g := range cla.Endpoints {
		slices.SortFunc(g.LbEndpoints, func(a, b *endpointv3.LbEndpoint) int {
			return slices.Compare(mustMarshal(a), mustMarshal(b))
		})
	}
}

func mustMarshal(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func TestWeightsAreScaledToWhatClientsTake(t *testing.T) {
	const most = math.MaxUint32
	for _, test := range []struct {
		name    string
		weights [][]uint32 // by locality
		want    [][]uint32
	}{
		{"they fit", [][]uint32{{most - 2, 1}, {1}}, [][]uint32{{most - 2, 1}, {1}}},
		{"one locality is too much", [][]uint32{{most, most}}, [][]uint32{{most / 3, most / 3}}},
		{"all together are too much", [][]uint32{{most}, {most - 1, 1}}, [][]uint32{{most / 3}, {(most - 1) / 3, 1}}},
		{"by one", [][]uint32{{most, 1}}, [][]uint32{{most / 2, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var all []model.Endpoint
			for zone, weights := range test.weights {
				for i, w := range weights {
					all = append(all, model.Endpoint{
						Address: fmt.Sprintf("10.0.%d.%d", zone, i), Weight: w, Locality: model.Locality{Zone: strconv.Itoa(zone)},
					})
				}
			}
			var got [][]uint32
			var total uint64
			for _, g := range assignmentOf(t, serviceOf(all...)).Endpoints {
				var weights []uint32
				var sum uint32
				for _, e := range g.LbEndpoints {
					weights = append(weights, e.LoadBalancingWeight.Value)
					sum += e.LoadBalancingWeight.Value
				}
				if g.LoadBalancingWeight.Value != sum {
					t.Errorf("a locality weighs %d, its endpoints %d", g.LoadBalancingWeight.Value, sum)
				}
				got, total = append(got, weights), total+uint64(sum)
			}
			if diff := gocmp.Diff(test.want, got); diff != "" || total > most {
				t.Errorf("total %d, -want +got:\n%s", total, diff)
			}
		})
	}
}

func TestManyHeavyEndpointsFit(t *testing.T) {
	var all []model.Endpoint
	for i := range 3000 {
		all = append(all, model.Endpoint{Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Weight: math.MaxUint32 - uint32(i%2)*math.MaxUint32})
	}
	if err := acceptable(assignmentOf(t, serviceOf(all...))); err != nil {
		t.Error(err)
	}
}

func TestLocalitiesThatAreNotText(t *testing.T) {
	s := serviceOf(
		model.Endpoint{Address: "10.0.0.1", Locality: model.Locality{Region: "a\xff"}},
		model.Endpoint{Address: "10.0.0.2", Locality: model.Locality{Region: "a\xfe"}},
		model.Endpoint{Address: "10.0.0.3", Locality: model.Locality{Region: "a\xff"}},
		model.Endpoint{Address: "unix:///\xff"},
	)
	cla := assignmentOf(t, s)
	if err := acceptable(cla); err != nil {
		t.Error(err)
	}
	if len(cla.Endpoints) != 1 || len(cla.Endpoints[0].LbEndpoints) != 3 {
		t.Errorf("got %v", cla)
	}
}

// An instance that is written down twice, once with each of its addresses, is
// two endpoints: nothing says that they are one.
func TestTwoAddressesAreTwoEndpoints(t *testing.T) {
	cla := assignmentOf(t, serviceOf(model.Endpoint{Address: "10.0.0.1"}, model.Endpoint{Address: "fd00::1"}))
	var got []string
	for _, g := range cla.Endpoints {
		for _, e := range g.LbEndpoints {
			got = append(got, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			if n := len(e.GetEndpoint().GetAdditionalAddresses()); n != 0 {
				t.Errorf("it has %d additional addresses", n)
			}
		}
	}
	if diff := gocmp.Diff([]string{"10.0.0.1", "fd00::1"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// acceptable says why gRPC or Envoy would reject an assignment: the rules of
// grpc-go's unmarshal_eds.go, and Envoy's on addresses.
func acceptable(cla *endpointv3.ClusterLoadAssignment) error {
	if err := cla.ValidateAll(); err != nil {
		return err
	}
	if !prioritiesAreWhole(cla) {
		return fmt.Errorf("a priority is left out of %v", cla)
	}
	type at struct { // of which a client takes one
		model.Locality
		priority uint32
	}
	addresses, localities, total := map[string]bool{}, map[at]bool{}, uint64(0)
	for _, g := range cla.Endpoints {
		switch {
		case g.Locality == nil:
			return fmt.Errorf("no locality in %v", g)
		case localities[at{localityOf(g.Locality), g.Priority}]:
			return fmt.Errorf("locality %v twice", g.Locality)
		case g.LoadBalancingWeight.GetValue() == 0:
			return fmt.Errorf("locality %v without weight", g.Locality)
		}
		localities[at{localityOf(g.Locality), g.Priority}] = true
		var sum uint64
		for _, e := range g.LbEndpoints {
			address := e.GetEndpoint().GetAddress()
			key := address.GetPipe().GetPath()
			if key == "" {
				a := address.GetSocketAddress()
				ip, err := netip.ParseAddr(a.GetAddress())
				if err != nil || ip.String() != a.GetAddress() || a.GetPortValue() == 0 {
					return fmt.Errorf("address %v is not canonical: %w", a, err)
				}
				key = net.JoinHostPort(a.GetAddress(), strconv.Itoa(int(a.GetPortValue())))
			}
			if addresses[key] || e.LoadBalancingWeight.GetValue() == 0 {
				return fmt.Errorf("address %s is there twice, or without weight", key)
			}
			addresses[key] = true
			sum += uint64(e.LoadBalancingWeight.Value)
		}
		if total += sum; sum != uint64(g.LoadBalancingWeight.Value) || total > math.MaxUint32 {
			return fmt.Errorf("weights of %v: %d, in all %d", g.Locality, sum, total)
		}
	}
	return nil
}
