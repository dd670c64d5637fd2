package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

var (
	namespaces = []string{"a", "b"}
	hosts      = []string{"x.com", "y.com", "x.a.svc.cluster.local", "x.a"}
	short      = []string{"x", "x.a", "x.a.svc"}
	ports      = []model.Port{
		{Number: 53, Name: "dns", Protocol: "UDP"},
		{Number: 80, Name: "http", Protocol: "HTTP"},
		{Number: 80, Name: "http", Protocol: "GRPC", TargetPort: 8080},
		{Number: 81, Name: "grpc", Protocol: "GRPC"},
		{Number: 81, Name: "tcp", Protocol: "TCP"},
		{Number: 81, Name: "tls", Protocol: "TLS"},
		{Number: 81, Name: "any", Protocol: ""},
	}
	views = slices.Concat(viewsOf(reach.KindEnvoy, "", "a", "b", "c"), viewsOf(reach.KindGRPC, "", "a", "b", "c"), viewsOf("other", "a"), []View{
		{Kind: reach.KindEnvoy, Namespace: "a", single: true, proxy: node.Proxy{Role: node.Sidecar, Domain: "cluster.local"}},
		{Kind: reach.KindEnvoy, Namespace: "a", single: true, proxy: node.Proxy{Role: node.Sidecar, Domain: "cluster.local", Cluster: "west"}},
		{Kind: reach.KindEnvoy, Namespace: "a", place: lb.Location{Locality: model.Locality{Region: "eu", Zone: "a"}, Network: "n", Node: "node-1"}},
	})
)

func viewsOf(kind string, namespaces ...string) (views []View) {
	for _, namespace := range namespaces {
		views = append(views, View{Kind: kind, Namespace: namespace})
	}
	return views
}

// drawEvent draws from few enough objects that they meet. Most are about
// endpoints, so that services live for a while.
func drawEvent(t *rapid.T) model.Event {
	ref := model.Ref{Key: model.Key{
		Source:    rapid.SampledFrom([]string{"first", "second"}).Draw(t, "source"),
		Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name"),
	}}
	var spec model.Spec
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		ref.Kind, spec = model.KindService, drawService(t)
	case 1:
		ref.Kind, spec = model.KindWorkload, model.Workload{Endpoint: drawEndpoint(t)}
	default:
		ref.Kind, spec = model.KindEndpoint, drawEndpoint(t)
		ref.Name += "/" + strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "index"))
	}
	record := owned(model.Record{Ref: ref, Spec: spec})
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		return model.Delete{Record: record}
	}
	return model.Upsert{Record: record}
}

func drawService(t *rapid.T) model.Service {
	s := model.Service{
		Hosts: model.ListOf(rapid.SliceOfNDistinct(rapid.SampledFrom(hosts), 1, 2, rapid.ID).Draw(t, "hosts")...),
		Ports: model.ListOf(rapid.SliceOfNDistinct(rapid.SampledFrom(ports), 1, 3, func(p model.Port) uint32 { return p.Number }).Draw(t, "ports")...),
		Resolution: rapid.SampledFrom([]model.Resolution{
			model.ResolutionStatic, model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS,
			model.ResolutionDNSRoundRobin, model.ResolutionNone, model.ResolutionDynamicDNS, "?",
		}).Draw(t, "resolution"),
		ExportTo:        model.ListOf(rapid.SliceOfN(rapid.SampledFrom([]string{"*", ".", "a", "b", "c", "~"}), 0, 2).Draw(t, "exportTo")...),
		SubjectAltNames: model.ListOf(rapid.SampledFrom([]string{"s", "t"}).Draw(t, "san")),
		Addresses:       model.ListOf(rapid.SliceOfN(rapid.SampledFrom([]string{"10.1.0.1", "10.1.0.1/32", "10.2.0.0/16", "FD00::5"}), 0, 2).Draw(t, "addresses")...),
	}
	s.Cluster = rapid.SampledFrom([]string{"", "east", "west"}).Draw(t, "cluster")
	s.Traffic = rapid.SampledFrom([]model.Traffic{{}, {}, {}, {NodeLocal: true}, {Prefer: model.PreferSameZone}, {Prefer: model.PreferSameNode}, {Affinity: model.ClientIP}, {Headless: true}, {Headless: true}, {ClusterLocal: true}}).Draw(t, "traffic")
	if rapid.Bool().Draw(t, "selects") {
		s.WorkloadSelector = model.MapOf(map[string]string{"app": "it"})
	}
	return s
}

func drawEndpoint(t *rapid.T) model.Endpoint {
	return model.Endpoint{
		Address: rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "fd00::1", "FD00::1", "unix:///run/s", "name.com"}).Draw(t, "address"),
		Also:    rapid.SampledFrom([]model.List[string]{{}, {}, model.ListOf("fd00::1"), model.ListOf("10.0.0.1"), model.ListOf("FD01::1", "10.0.0.9")}).Draw(t, "also"),
		Labels:  model.MapOf(map[string]string{"app": "it", "version": rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version"), lb.ClusterLabel: rapid.SampledFrom([]string{"", "east", "west"}).Draw(t, "of cluster"), "security.istio.io/tlsMode": rapid.SampledFrom([]string{"", "istio"}).Draw(t, "TLS mode")}),
		Locality: model.Locality{
			Region: rapid.SampledFrom([]string{"", "eu"}).Draw(t, "region"), Zone: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"),
		},
		ServiceAccount: rapid.SampledFrom([]string{"", "web", "spiffe://x/y"}).Draw(t, "account"),
		Weight:         rapid.Uint32Range(0, 2).Draw(t, "weight"),
		Node:           rapid.SampledFrom([]string{"", "node-1", "node-2"}).Draw(t, "node"),
		Network:        rapid.SampledFrom([]string{"", "", "n", "flat"}).Draw(t, "network of endpoint"),
		Health:         rapid.SampledFrom([]model.Health{model.Healthy, model.Healthy, model.Unhealthy}).Draw(t, "health"),
	}
}

// resource identifies an object that a view may be notified of.
type resource struct {
	View
	world.Row
	name string
}

type found struct {
	subject world.Subject
	world.Encoded
}

// everything returns what each view finds, and fails if that is not what it is
// shown there is.
func everything(t *rapid.T, w *World) map[resource]found {
	all := map[resource]found{}
	for _, v := range views {
		if w.settings != policy.Istio {
			v.settings = w.settings
		}
		for typ := range Types(nil) {
			for name := range w.Names(v, world.Row(typ)) {
				subject, ok := w.Find(v, world.Row(typ), name)
				if !ok {
					t.Fatalf("%s is named and not found", name)
				}
				all[resource{v, world.Row(typ), name}] = found{subject, subject.Encode().Joined()}
			}
			for _, host := range slices.Concat(hosts, short) {
				for _, port := range []uint32{53, 80, 81} {
					at := resource{v, world.Row(typ), serviceTypeOf(world.Row(typ)).name(host, port)}
					subject, ok := w.Find(v, at.Row, at.name)
					_, named := all[at]
					if want := named || at.Row == ListenerType && slices.Contains(short, host) && dials(w, v, host, port); ok != want {
						t.Fatalf("%v: named %t, wanted %t, found %t", at, named, want, ok)
					}
					if ok {
						all[at] = found{subject, subject.Encode().Joined()}
					}
				}
			}
		}
	}
	return all
}

// dials reports whether a gRPC client of a view reaches a service by a short name.
func dials(w *World, v View, short string, port uint32) bool {
	if short == "x" && v.Namespace != "a" {
		return false
	}
	_, ok := w.Find(v, ListenerType, names.Listener("x.a.svc.cluster.local", port))
	return ok && reach.IsGRPC(v.Kind)
}

func TestChangesMissNothing(t *testing.T) { t.Parallel(); checkChanges(t, policy.Istio) }

// Nor do they where there are subsets, priorities by locality, and identities.
func TestChangesUnderSettingsMissNothing(t *testing.T) {
	t.Parallel()
	checkChanges(t, conforming.Prepare())
}

func checkChanges(t *testing.T, s *policy.Prepared) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		order := []string{"first", "second"}
		builder := catalog.NewBuilder(slices.Clone(order))
		first := worldUnder(s, builder.Snapshot(), true, "istio-system", nil)
		start := everything(t, first)
		before, sum := start, catalog.Change{}
		for revision := range rapid.IntRange(1, 12).Draw(t, "steps") {
			var change catalog.Change
			if rapid.IntRange(0, 7).Draw(t, "reload") == 0 {
				slices.Reverse(order)
				change = builder.Arrange(catalog.Order{Sources: slices.Clone(order)})
			} else {
				change = builder.Apply(uint64(revision+1), rapid.SliceOfN(rapid.Custom(drawEvent), 1, 4).Draw(t, "events"))
			}
			now := builder.Snapshot()
			after := everything(t, worldUnder(s, now, true, "istio-system", nil))
			checkListed(t, before, after, changesOf(s, now, change))
			if s == policy.Istio {
				checkClustersRest(t, change, changesOf(s, now, change))
			}
			checkLossesAreUrgent(t, before, after, changesOf(s, now, change))
			sum = sum.Then(change)
			checkListed(t, start, after, changesOf(s, now, sum))
			checkLossesAreUrgent(t, start, after, changesOf(s, now, sum))
			before = after
		}
	})
}

// checkListed holds that whatever differs for a view is listed, for it.
func checkListed(t *rapid.T, before, after map[resource]found, changes []world.Changed) {
	listed := func(at resource) bool {
		return slices.ContainsFunc(changes, func(c world.Changed) bool {
			return c.Row == at.Row && c.Name == at.name && (c.Audience == nil || slices.Contains(c.Audience, at.Namespace))
		})
	}
	for at, is := range after {
		was := before[at]
		if is.Name != at.name {
			t.Fatalf("%v: the resource is called %s", at, is.Name)
		}
		if is.subject == was.subject && is.Version != was.Version {
			t.Fatalf("%v: equal subjects differ in content", at)
		}
		if is.Version != was.Version && !listed(at) {
			t.Fatalf("%v changed and is not among %v", at, changes)
		}
	}
	for at := range before {
		if _, still := after[at]; !still && !listed(at) {
			t.Fatalf("%v is gone and is not among %v", at, changes)
		}
	}
}

// checkLossesAreUrgent holds that a load assignment without an address that a
// view was shown before is listed as urgent.
func checkLossesAreUrgent(t *rapid.T, before, after map[resource]found, changes []world.Changed) {
	for at, was := range before {
		is, still := after[at]
		if at.Row != EndpointType || !still || !loses(addresses(t, was), addresses(t, is)) {
			continue
		}
		if !slices.ContainsFunc(changes, func(c world.Changed) bool { return c.Row == at.Row && c.Name == at.name && c.Urgent }) {
			t.Fatalf("%v lost an address, and it is not urgent: %v", at, changes)
		}
	}
}

func loses(was, is []string) bool {
	return slices.ContainsFunc(was, func(address string) bool { return !slices.Contains(is, address) })
}

// addresses lists where an encoded load assignment leads.
func addresses(t *rapid.T, f found) (list []string) {
	for _, locality := range assignmentIn(t, f.Encoded).GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			list = append(list, e.GetEndpoint().GetAddress().String())
		}
	}
	return list
}

func assignmentIn(t *rapid.T, e world.Encoded) *endpointv3.ClusterLoadAssignment {
	var body anypb.Any
	m := &endpointv3.ClusterLoadAssignment{}
	if err := proto.Unmarshal(e.Body, &body); err != nil {
		t.Fatal(err)
	}
	if err := body.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// What is lost is urgent, and what is won or looks otherwise is not.
func TestWhatIsUrgent(t *testing.T) {
	place := func(address string, look func(*model.Endpoint)) model.Event {
		e := place1("a", "p", address).(model.Upsert)
		spec := e.Record.Spec.(model.Endpoint)
		look(&spec)
		e.Record.Spec = spec
		return e
	}
	as := func(r model.Resolution, s model.Service) model.Service {
		s.Resolution, s.Ports = r, model.ListOf(ports[1])
		return s
	}
	same := func(*model.Endpoint) {}
	sick := func(e *model.Endpoint) { e.Health = model.Unhealthy }
	gone := model.Delete{Record: place1("a", "p", "10.0.0.1").(model.Upsert).Record}
	static := record("a", "p", as(model.ResolutionStatic, model.Service{}))
	dns := record("a", "p", as(model.ResolutionDNS, model.Service{}))
	for _, test := range []struct {
		name   string
		before []model.Event
		step   model.Event
		want   []world.Row
	}{
		{"an endpoint is gone", []model.Event{static, place("10.0.0.1", same)}, gone, []world.Row{EndpointType}},
		{"it is replaced", []model.Event{static, place("10.0.0.1", same)}, place("10.0.0.2", same), []world.Row{EndpointType}},
		{"it falls ill", []model.Event{static, place("10.0.0.1", same)}, place("10.0.0.1", sick), []world.Row{EndpointType}},
		{"a sick one is gone", []model.Event{static, place("10.0.0.1", sick)}, gone, nil},
		{"one comes", []model.Event{static}, place("10.0.0.1", same), nil},
		{"one recovers", []model.Event{static, place("10.0.0.1", sick)}, place("10.0.0.1", same), nil},
		{"its weight changes", []model.Event{static, place("10.0.0.1", same)}, place("10.0.0.1", func(e *model.Endpoint) { e.Weight = 7 }), nil},
		{"it moves", []model.Event{static, place("10.0.0.1", same)}, place("10.0.0.1", func(e *model.Endpoint) { e.Locality.Zone = "z" }), nil},
		{"its labels change", []model.Event{static, place("10.0.0.1", same)}, place("10.0.0.1", func(e *model.Endpoint) { e.Labels = model.MapOf(map[string]string{"v": "2"}) }), nil},
		{"a name of a cluster is gone", []model.Event{dns, place("x.com", same)}, gone, []world.Row{ClusterType}},
		{"the service is gone", []model.Event{static, place("10.0.0.1", same)}, model.Delete{Record: static.(model.Upsert).Record}, []world.Row{ClusterType, EndpointType}},
		{"a service comes", nil, static, nil},
		{"one comes that hides another of its host", []model.Event{static, place("10.0.0.1", same)}, record("b", "p", as(model.ResolutionStatic, model.Service{})), []world.Row{ClusterType, EndpointType}},
	} {
		t.Run(test.name, func(t *testing.T) {
			builder := catalog.NewBuilder(nil)
			builder.Apply(1, test.before)
			change := builder.Apply(2, []model.Event{test.step})
			var got []world.Row
			for _, c := range Changes(builder.Snapshot(), change) {
				if c.Urgent {
					got = append(got, c.Row)
				}
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// checkClustersRest holds that endpoints of STATIC services that come and go
// are no change of a cluster.
func checkClustersRest(t *rapid.T, change catalog.Change, changes []world.Changed) {
	for _, c := range change.Services {
		if c.Old == nil || c.New == nil || c.Old.Definition != c.New.Definition || c.New.Resolution != model.ResolutionStatic {
			return
		}
		for id := range c.Endpoints {
			if id.Port == 0 {
				return
			}
		}
	}
	chosen := slices.ContainsFunc(slices.Collect(maps.Values(change.Services)), func(c catalog.ServiceChange) bool {
		return slices.ContainsFunc(c.New.Ports, func(p model.Port) bool { return c.New.ChosenAt("", p.Number) })
	})
	for _, c := range changes {
		if c.Row != EndpointType && (c.Row != ListenerType || !chosen) {
			t.Fatalf("%v is listed for a change of addresses", c)
		}
	}
}

// At one time there is one thing in a slot, whoever sees it.
func TestSlotsAreNotShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builder := catalog.NewBuilder([]string{"first", "second"})
		builder.Apply(1, rapid.SliceOfN(rapid.Custom(drawEvent), 1, 20).Draw(t, "events"))
		slots := map[any]world.Subject{}
		for at, f := range everything(t, NewWorld(builder.Snapshot(), true, "istio-system")) {
			if other, taken := slots[f.subject.Slot()]; taken && other != f.subject {
				t.Fatalf("%v: two subjects in slot %v", at, f.subject.Slot())
			}
			slots[f.subject.Slot()] = f.subject
		}
	})
}

// record is the upsert of a service of namespace ns, for tables; place1 is that
// of its endpoint.
func record(ns, name string, spec model.Service) model.Event {
	spec.Hosts = model.ListOf("h")
	if spec.Resolution == "" {
		spec.Resolution = model.ResolutionStatic
	}
	return model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: ns, Name: name}},
		Spec: spec,
	}}
}

func place1(ns, name, address string) model.Event {
	return model.Upsert{Record: owned(model.Record{
		Ref:  model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "s", Namespace: ns, Name: name + "/1"}},
		Spec: model.Endpoint{Address: address},
	})}
}

func TestChangesAreExact(t *testing.T) {
	http, grpc := ports[1], ports[3]
	private := model.Service{Ports: model.ListOf(http), ExportTo: model.ListOf(".")}
	for _, test := range []struct {
		name   string
		before []model.Event
		step   []model.Event
		want   []string
	}{
		{
			"an endpoint of a STATIC service is a change of its assignment",
			[]model.Event{record("a", "p", private), place1("a", "p", "10.0.0.1")},
			[]model.Event{place1("a", "p", "10.0.0.2")},
			[]string{"1 outbound|80||h [a]"},
		},
		{
			"a unix socket decides whether gRPC is offered the service",
			[]model.Event{record("a", "p", private), place1("a", "p", "10.0.0.1")},
			[]model.Event{place1("a", "p", "unix:///run/s")},
			[]string{"1 outbound|80||h [a]", "0 outbound|80||h [a]", "2 h:80 [a]", "3 outbound|80||h [a]"},
		},
		{
			"an endpoint of a DNS service is part of its cluster",
			[]model.Event{record("a", "p", model.Service{Ports: model.ListOf(http), Resolution: model.ResolutionDNS}), place1("a", "p", "x.com")},
			[]model.Event{place1("a", "p", "y.com")},
			[]string{"0 outbound|80||h []", "2 h:80 []", "3 outbound|80||h []"},
		},
		{
			"what no resource is made of changes none",
			[]model.Event{record("a", "p", private)},
			[]model.Event{record("a", "p", model.Service{Ports: model.ListOf(http), ExportTo: model.ListOf("."), SubjectAltNames: model.ListOf("spiffe://x")})},
			nil,
		},
		{
			"a service that is exported elsewhere concerns those who saw it and those who do now",
			[]model.Event{record("a", "p", private)},
			[]model.Event{record("a", "p", model.Service{Ports: model.ListOf(http), ExportTo: model.ListOf("c", "b")})},
			[]string{
				"0 outbound|80||h [a b c]", "1 outbound|80||h [a b c]", "2 h:80 [a b c]", "3 outbound|80||h [a b c]",
				"2 0.0.0.0_80 [a b c]", "2 127.0.0.1_80 [a b c]", "2 ::1_80 [a b c]", "2 ::_80 [a b c]", "3 80 [a b c]", "3 h:80 [a b c]",
			},
		},
		{
			"a service that goes uncovers another of its host, with other ports",
			[]model.Event{record("a", "p", private), record("b", "p", model.Service{Ports: model.ListOf(grpc)})},
			[]model.Event{model.Delete{Record: record("a", "p", private).(model.Upsert).Record}},
			[]string{
				"0 outbound|80||h [a]", "1 outbound|80||h [a]", "2 h:80 [a]", "3 outbound|80||h [a]",
				"0 outbound|81||h [a]", "1 outbound|81||h [a]", "2 h:81 [a]", "3 outbound|81||h [a]",
				"2 0.0.0.0_80 [a]", "2 0.0.0.0_81 [a]", "2 127.0.0.1_80 [a]", "2 127.0.0.1_81 [a]",
				"2 ::1_80 [a]", "2 ::1_81 [a]", "2 ::_80 [a]", "2 ::_81 [a]", "3 80 [a]", "3 81 [a]", "3 h:80 [a]", "3 h:81 [a]",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			builder := catalog.NewBuilder(nil)
			builder.Apply(1, test.before)
			change := builder.Apply(2, test.step)
			var got []string
			for _, c := range Changes(builder.Snapshot(), change) {
				got = append(got, fmt.Sprint(int(c.Row), " ", c.Name, " ", c.Audience))
			}
			if diff := gocmp.Diff(withSingleHosts(test.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// withSingleHosts adds what is the same with single hosts: beside the routes of a port
// those that take them, and a single host for each service port.
func withSingleHosts(changes []string) (all []string) {
	var hosts []string
	for _, c := range changes {
		all = append(all, c)
		name, ofRoutes := strings.CutPrefix(c, fmt.Sprintf("%d ", RouteType))
		name, audience, _ := strings.Cut(name, " ")
		host, number, ofOne := names.ParseListener(name)
		switch _, isPort := names.ParsePort(name); {
		case ofRoutes && isPort:
			all = append(all, fmt.Sprintf("%d %s %s", RouteType, name+names.HostsSuffix, audience))
		case ofRoutes && ofOne:
			hosts = append(hosts, fmt.Sprintf("%d %s %s", VirtualHostType, names.VirtualHost(host, number), audience))
		}
	}
	return append(all, hosts...)
}
