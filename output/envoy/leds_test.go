package envoy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/leds"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// largeRig is a service whose endpoints go one by one, as one Envoy is sent them.
type largeRig struct {
	builder  *catalog.Builder
	maker    stepFunc
	world    world.World
	revision uint64
}

func newLargeRig(above int) *largeRig {
	return &largeRig{builder: catalog.NewBuilder(nil), maker: withCollections(Step, leds.New(leds.Default(ledsRows, above)))}
}

func largeService() model.Record {
	return model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "n", Name: "svc"}},
		Spec: model.Service{
			Hosts: model.ListOf("svc.n"), Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		},
	}
}

func memberRecord(n int, e model.Endpoint) model.Record {
	owner := largeService().Ref
	ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
	ref.Name += "/" + strconv.Itoa(n)
	return model.Record{Ref: ref, Owner: owner, Spec: e}
}

func (r *largeRig) apply(records ...model.Record) {
	var events []model.Event
	for _, record := range records {
		events = append(events, model.Upsert{Record: record})
	}
	r.step(events)
}

func (r *largeRig) remove(record model.Record) { r.step([]model.Event{model.Delete{Record: record}}) }

func (r *largeRig) step(events []model.Event) {
	r.revision++
	change := r.builder.Apply(r.revision, events)
	r.world = r.maker(r.builder.Snapshot(), change, true, "istio-system").World
}

func (r *largeRig) find(t testing.TB, row world.Row, name string, one bool) world.Subject {
	t.Helper()
	view := r.world.View(row, world.Client{Kind: reach.KindEnvoy, Namespace: "n", Increments: one})
	subject, ok := r.world.Find(view, row, name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return subject
}

// holds are the members that an Envoy has by name, as it takes what it is sent of a
// collection.
func take(t testing.TB, holds map[string]*endpointv3.LbEndpoint, sent world.Encoded) {
	t.Helper()
	m := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(sent.Body, m); err != nil || !sent.Framed {
		t.Fatalf("%s cannot be read: %v", sent.Name, err)
	}
	for _, name := range m.RemovedResources {
		delete(holds, name)
	}
	for _, res := range m.Resources {
		lb := &endpointv3.LbEndpoint{}
		if err := res.Resource.UnmarshalTo(lb); err != nil {
			t.Fatal(err)
		}
		if reason := deadly(lb); reason != "" || globOf(res.Name) != sent.Name || !utf8.ValidString(res.Name) {
			t.Fatalf("Envoy dies of %s, %v: %s", res.Name, lb, reason)
		}
		holds[res.Name] = lb
	}
}

// folded is what an Envoy has of a service, by place; held are its members.
func (r *largeRig) folded(t testing.TB, held map[string]map[string]*endpointv3.LbEndpoint, versions map[string]world.Version) map[string]uint32 {
	t.Helper()
	body := func(s world.Subject) *endpointv3.ClusterLoadAssignment {
		if once, ok := s.(world.Unrepeatable); ok {
			return message(t, once.EncodeOnce().Body).(*endpointv3.ClusterLoadAssignment) //nolint:errcheck,forcetypeassert // it panics
		}
		return message(t, s.Encode().Body).(*endpointv3.ClusterLoadAssignment) //nolint:errcheck,forcetypeassert // it panics
	}
	found := map[string]uint32{}
	for _, g := range body(r.find(t, EndpointType, names.Cluster("svc.n", 80), true)).Endpoints {
		list := g.LbEndpoints
		if name := g.GetLedsClusterLocalityConfig().GetLedsCollectionName(); name != "" {
			if len(list) > 0 || !strings.HasPrefix(name, "xdstp://") {
				t.Fatalf("Envoy NACKs %v", g)
			}
			if held[name] == nil {
				held[name] = map[string]*endpointv3.LbEndpoint{}
			}
			all := r.find(t, MemberType, name, true).(world.Incremental) //nolint:errcheck,forcetypeassert // it panics
			take(t, held[name], all.Since(versions[name]).Encode())
			versions[name] = all.Revision()
			for _, lb := range held[name] {
				list = append(list, lb)
			}
		}
		for _, lb := range list {
			found[fmt.Sprint(g.Locality, lb.GetEndpoint().GetAddress())] = lb.GetLoadBalancingWeight().GetValue()
		}
	}
	return found
}

func (r *largeRig) mustFold(t testing.TB, held map[string]map[string]*endpointv3.LbEndpoint, versions map[string]world.Version) {
	t.Helper()
	want := map[string]uint32{}
	plain := message(t, r.find(t, EndpointType, names.Cluster("svc.n", 80), false).Encode().Body).(*endpointv3.ClusterLoadAssignment) //nolint:errcheck,forcetypeassert // it panics
	for _, g := range plain.Endpoints {
		for _, lb := range g.LbEndpoints {
			want[fmt.Sprint(g.Locality, lb.GetEndpoint().GetAddress())] = lb.GetLoadBalancingWeight().GetValue()
		}
	}
	if got := r.folded(t, held, versions); !maps.Equal(got, want) {
		t.Fatalf("folded %v, assigned %v", got, want)
	}
}

// FuzzMembers has an endpoint of a large service be anything, then anything else.
// Whatever is sent of it one by one is something that Envoy takes, and comes to the
// same as the assignment.
func FuzzMembers(f *testing.F) {
	for _, address := range []string{"10.0.0.1", "fd00::1", "FD00::1", "::ffff:10.0.0.1", "fe80::1%eth0", "name.example.com", "", "unix:///run/x", "unix://" + strings.Repeat("x", 200), "unix:", "/run/x", "0.0.0.0", "10.0.0.9\x00"} {
		f.Add(address, uint32(80), "r", "z", uint32(1), true)
		f.Add(address, uint32(70000), "\xff", "", uint32(1<<31), false)
	}
	f.Fuzz(func(t *testing.T, address string, port uint32, region, zone string, weight uint32, healthy bool) {
		r := newLargeRig(1)
		odd := model.Endpoint{Address: address, Ports: model.MapOf(map[string]uint32{"http": port}), Weight: weight, Locality: model.Locality{Region: region, Zone: zone}}
		if odd.Health = model.Unhealthy; healthy {
			odd.Health = model.Healthy
		}
		plain := func(n int) model.Record {
			return memberRecord(n, model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", n), Health: model.Healthy, Locality: odd.Locality})
		}
		held, versions := map[string]map[string]*endpointv3.LbEndpoint{}, map[string]world.Version{}
		for _, step := range [][]model.Record{{largeService(), plain(1), plain(2), plain(3)}, {memberRecord(4, odd)}, {plain(4)}, {memberRecord(1, odd)}, {plain(5)}} {
			r.apply(step...)
			r.mustFold(t, held, versions)
			r.mustHideFromOthers(t, versions)
		}
	})
}

// mustHideFromOthers holds that a client without increments gets no collection: over the
// state of the world Envoy dies of one.
func (r *largeRig) mustHideFromOthers(t testing.TB, collections map[string]world.Version) {
	t.Helper()
	for _, c := range []world.Client{{Kind: reach.KindEnvoy, Namespace: "n"}, {Kind: reach.KindGRPC, Namespace: "n", Increments: true}} {
		for name := range collections {
			if is, ok := r.world.Find(r.world.View(MemberType, c), MemberType, name); ok {
				t.Fatalf("%+v finds %v", c, is)
			}
		}
		for name := range r.world.Names(r.world.View(MemberType, c), MemberType) {
			t.Fatalf("%+v is shown %s", c, name)
		}
		name := names.Cluster("svc.n", 80)
		is, ok := r.world.Find(r.world.View(EndpointType, c), EndpointType, name)
		if !ok {
			continue
		}
		m := message(t, is.Encode().Body).(*endpointv3.ClusterLoadAssignment) //nolint:errcheck,forcetypeassert // it panics
		if of := collectionsIn(m); len(of) > 0 {
			t.Fatalf("%+v is led to %v", c, of)
		}
	}
}

// A change of a member costs the same among 1,000 and 20,000.
func BenchmarkMember(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		r := newLargeRig(100)
		records := []model.Record{largeService()}
		at := func(i int) model.Endpoint {
			return model.Endpoint{Address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String(), Health: model.Healthy}
		}
		for i := range n {
			records = append(records, memberRecord(i, at(i)))
		}
		r.apply(records...)
		assigned, ok := r.find(b, EndpointType, names.Cluster("svc.n", 80), true).(spreadAssignment)
		if !ok {
			b.Fatal("the service is not in collections")
		}
		name := assigned.partition.Groups[0].Collection
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			subject := r.find(b, MemberType, name, true).(roster) //nolint:errcheck,forcetypeassert // it panics
			next := *subject.Collection
			size := 0
			for b.Loop() {
				next.Journal = slices.Concat(subject.Journal, []netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:80")})
				size = len(roster{&next, len(subject.Journal), nil}.Encode().Body)
			}
			b.ReportMetric(float64(size), "B/member")
		})
	}
}

// Members have no priorities, so a service that fails over by locality has an assignment
// of its own for each locality, however large it is.
func TestServicesThatFailOverAreNotSpread(t *testing.T) {
	s := NewTranslator()
	s.LEDS.Above = 1
	s.Hosts = []policy.HostPolicy{{Host: "svc.n", Policy: policy.Policy{OutlierDetection: &policy.OutlierDetection{}}}}
	r := &largeRig{builder: catalog.NewBuilder(nil)}
	step := s.Begin(nil)
	change := r.builder.Apply(1, []model.Event{
		model.Upsert{Record: largeService()},
		model.Upsert{Record: memberRecord(1, model.Endpoint{Address: "10.0.0.1"})},
		model.Upsert{Record: memberRecord(2, model.Endpoint{Address: "10.0.0.2"})},
	})
	r.world = step(r.builder.Snapshot(), change, true, "istio-system").World
	if is, ok := r.find(t, EndpointType, names.Cluster("svc.n", 80), true).(assignment); !ok {
		t.Errorf("it is %v", is)
	}
}

// The backends of a split are used alike wherever clients are, so their endpoints are in
// collections even if near endpoints come first. The weight of one endpoint is one member.
func TestServicesWithSharesAreSpread(t *testing.T) {
	const old, next = 300, 100
	s := NewTranslator()
	s.LEDS.Above = 1
	s.Defaults = policy.Policy{OutlierDetection: &policy.OutlierDetection{}}
	for _, nearFirst := range []bool{false, true} {
		key := catalog.ServiceKey{Namespace: "n", Host: "svc.n"}
		divided := &split.Split{NearFirst: nearFirst, Backends: []model.Backend{
			{Labels: model.MapOf(map[string]string{"of": "old"}), Weight: 99}, {Labels: model.MapOf(map[string]string{"of": "new"}), Weight: 1},
		}}
		r := &largeRig{builder: catalog.NewBuilderIn(catalog.Order{Splits: map[catalog.ServiceKey]*split.Split{key: divided}}), maker: s.Begin(nil)}
		member := func(n int, weight uint32) model.Record {
			of := "old"
			if n >= old {
				of = "new"
			}
			return memberRecord(n, model.Endpoint{
				Address: fmt.Sprintf("10.0.%d.%d", n/200, n%200), Weight: weight, Labels: model.MapOf(map[string]string{"of": of}),
				Locality: model.Locality{Region: of},
			})
		}
		records := []model.Record{largeService()}
		for n := range old + next {
			records = append(records, member(n, 10))
		}
		r.apply(records...)
		assigned, spread := r.find(t, EndpointType, names.Cluster("svc.n", 80), true).(spreadAssignment)
		if spread == nearFirst {
			t.Errorf("near endpoints first: %t, in collections: %t", nearFirst, spread)
		}
		if !spread {
			continue
		}
		held, versions := map[string]map[string]*endpointv3.LbEndpoint{}, map[string]world.Version{}
		r.mustFold(t, held, versions)
		r.apply(member(7, 11)) // the factor of 300 endpoints is the same
		changed := 0
		for name, version := range versions {
			sent := &discoveryv3.DeltaDiscoveryResponse{}
			all := r.find(t, MemberType, name, true).(world.Incremental) //nolint:errcheck,forcetypeassert // it panics
			if err := proto.Unmarshal(all.Since(version).Encode().Body, sent); err != nil {
				t.Fatal(err)
			}
			changed += len(sent.Resources) + len(sent.RemovedResources)
		}
		if after := r.find(t, EndpointType, names.Cluster("svc.n", 80), true); after.Encode().Version != assigned.Encode().Version || changed != 1 {
			t.Errorf("a weight is %d members, and another assignment: %v", changed, after)
		}
		r.mustFold(t, held, versions)
	}
}

// An endpoint behind two ports of a service counts once in the collection of each.
func TestPortsOfOneTargetAreCountedSeparately(t *testing.T) {
	r := newLargeRig(4)
	service := largeService()
	service.Spec = model.Service{
		Hosts: model.ListOf("svc.n"), Resolution: model.ResolutionStatic, Ports: model.ListOf(
			model.Port{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}, model.Port{Number: 81, Name: "more", Protocol: "HTTP", TargetPort: 8080},
		),
	}
	const heavy, light = 10, 30
	records := []model.Record{service}
	for n := range heavy + light {
		e := model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", n+1), Weight: 1}
		if n < heavy {
			e.Weight = 100
		}
		records = append(records, memberRecord(n, e))
	}
	r.apply(records...)
	for n := heavy; n < heavy+light; n++ {
		r.remove(memberRecord(n, model.Endpoint{}))
		r.mustFold(t, map[string]map[string]*endpointv3.LbEndpoint{}, map[string]world.Version{})
	}
}

func TestWhichHostsAreInHandshakes(t *testing.T) {
	for host, want := range map[string]bool{"a.com": true, "*.a.com": true, "*foo.a.com": false, "*-v1.a.com": false, "*": false} {
		if got := names.IsSNI(host); got != want {
			t.Errorf("%s: %t, want %t", host, got, want)
		}
	}
}
