package resource_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/push/world"
)

const entries = "istio/networking/v1alpha3/serviceentries"

// Each type has a name of its own. The kinds of SMI have none.
func TestTypesHaveNames(t *testing.T) {
	t.Parallel()
	for _, table := range []resource.Table{resource.OverXDS(), resource.Collections()} {
		seen := map[string]bool{}
		for _, row := range table {
			if row.Name == "" || seen[row.Name] || row.Kind.IsSMI() {
				t.Errorf("the type of %s is %q", row.Kind.Name, row.Name)
			}
			seen[row.Name] = true
		}
	}
}

// made is a translation step by step, as MCP v1 has it.
type made struct {
	t          *testing.T
	builder    *catalog.Builder
	translator *resource.Translator
	world      world.World
	steps      uint64
}

func newMade(t *testing.T) *made {
	t.Helper()
	return &made{t: t, builder: catalog.NewBuilder(mergeOrder), translator: resource.NewTranslator(resource.Collections(), resource.Options{})}
}

func (m *made) apply(events ...model.Event) world.Update {
	m.steps++
	change := m.builder.Apply(m.steps, events)
	u := m.translator.Step(m.builder.Snapshot(), change, true, "")
	m.world = u.World
	return u
}

// in are the resources of a collection by name.
func (m *made) in(collection string) map[string]*mcpapi.Resource {
	m.t.Helper()
	row := world.Row(slices.IndexFunc(resource.Collections(), func(r resource.Type) bool { return r.Name == collection }))
	all := map[string]*mcpapi.Resource{}
	view := m.world.View(row, world.Client{})
	for name := range m.world.Names(view, row) {
		subject, ok := m.world.Find(view, row, name)
		if !ok {
			m.t.Fatalf("%s is a name of nothing", name)
		}
		encoded, r := subject.Encode(), &mcpapi.Resource{}
		if err := proto.Unmarshal(encoded.Body, r); err != nil {
			m.t.Fatal(err)
		}
		if r.Metadata.Name != name || encoded.Name != name || r.Metadata.Version != encoded.Version.String() {
			m.t.Errorf("%s is %s of version %s, in its own words %s %s", name, encoded.Name, encoded.Version, r.Metadata.Name, r.Metadata.Version)
		}
		all[name] = r
	}
	return all
}

func (m *made) entry(collection, name string) (*mcpapi.Resource, *networking.ServiceEntry) {
	m.t.Helper()
	r, spec := m.in(collection)[name], &networking.ServiceEntry{}
	if r == nil {
		m.t.Fatalf("no %s among %v", name, slices.Sorted(maps.Keys(m.in(collection))))
	}
	if err := r.Body.UnmarshalTo(spec); err != nil {
		m.t.Fatal(err)
	}
	return r, spec
}

func service(source, name string, hosts ...string) model.Record {
	return model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "shop", Name: name}}, Spec: model.Service{
		Hosts: model.ListOf(hosts...), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}}
}

func endpoint(of model.Record, address string, health model.Health) model.Record {
	r := model.Record{Ref: of.Ref, Owner: of.Ref, Spec: model.Endpoint{Address: address, Health: health}}
	r.Kind, r.Name = model.KindEndpoint, of.Name+"/"+address
	return r
}

func upserts(records ...model.Record) (events []model.Event) {
	for _, r := range records {
		events = append(events, model.Upsert{Record: r})
	}
	return events
}

// A ServiceEntry that passes through keeps its name, unless another could claim it.
func TestNamesAreThoseOfTheRecords(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	names := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(m.in(entries))); !slices.Equal(got, want) {
			t.Errorf("names are %v, want %v", got, want)
		}
	}
	m.apply(upserts(service("first", "reviews", "reviews.example"), service("first", "many", "a.example", "b.example"), service("first", "NoObject", "c.example"))...)
	names("shop/a.example", "shop/b.example", "shop/c.example", "shop/reviews")
	m.apply(upserts(service("second", "reviews", "ratings.example"))...) // of another source
	names("shop/a.example", "shop/b.example", "shop/c.example", "shop/ratings.example", "shop/reviews.example")
	m.apply(model.Delete{Record: service("second", "reviews")})
	names("shop/a.example", "shop/b.example", "shop/c.example", "shop/reviews")
	m.apply(upserts(service("first", "a.example", "d.example"))...) // the name that is made of another host
	names("shop/a.example", "shop/b.example", "shop/c.example", "shop/d.example", "shop/reviews")
	m.apply(upserts(service("first", "reviews.example-0123456789ab", "e.example"))...) // as a further part has it
	names("shop/a.example", "shop/b.example", "shop/c.example", "shop/d.example", "shop/e.example", "shop/reviews")
}

// What a ServiceEntry says about itself, and to whom, passes.
func TestWhatAServiceSaysOfItselfPasses(t *testing.T) {
	t.Parallel()
	m, r := newMade(t), service("first", "reviews", "reviews.example")
	spec := r.Spec.(model.Service)
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec.Meta = model.Meta{Labels: model.MapOf(map[string]string{"team": "a"}), Annotations: model.MapOf(map[string]string{"why": "b"}), Created: created}
	spec.ExportTo = model.ListOf(".", "bank")
	r.Spec = spec
	m.apply(upserts(r)...)
	got, entry := m.entry(entries, "shop/reviews")
	if d := got.Metadata; d.Labels["team"] != "a" || d.Annotations["why"] != "b" || !d.CreateTime.AsTime().Equal(created) {
		t.Errorf("it says %v", d)
	}
	if !slices.Equal(entry.ExportTo, []string{".", "bank"}) {
		t.Errorf("it is exported to %v", entry.ExportTo)
	}
}

// A service of any size is one object: the limit of 4,096 endpoints is Kubernetes'.
func TestServiceOfManyEndpointsIsOneObject(t *testing.T) {
	t.Parallel()
	m, big := newMade(t), service("first", "big", "big.example")
	records := []model.Record{big}
	for i := range 5000 {
		records = append(records, endpoint(big, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), model.Healthy))
	}
	m.apply(upserts(records...)...)
	if _, entry := m.entry(entries, "shop/big"); len(m.in(entries)) != 1 || len(entry.Endpoints) != 5000 {
		t.Errorf("there are %d objects, one of %d endpoints", len(m.in(entries)), len(entry.Endpoints))
	}
}

// An endpoint of some ports only stands in an object with just those.
func TestEndpointsOfSomePortsHaveAnObjectOfTheirOwn(t *testing.T) {
	t.Parallel()
	m, r := newMade(t), service("first", "two", "two.example")
	spec := r.Spec.(model.Service)
	spec.Ports = model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 90, Name: "tcp", Protocol: "TCP"})
	r.Spec = spec
	some := endpoint(r, "10.0.0.2", model.Healthy)
	some.Spec = model.Endpoint{Address: "10.0.0.2", Exact: true, Ports: model.MapOf(map[string]uint32{"tcp": 90})}
	m.apply(upserts(r, endpoint(r, "10.0.0.1", model.Healthy), some)...)
	all := m.in(entries)
	for name := range all {
		_, entry := m.entry(entries, name)
		if ports := len(entry.Ports); len(entry.Endpoints) != 1 || ports != map[string]int{"10.0.0.1": 2, "10.0.0.2": 1}[entry.Endpoints[0].Address] {
			t.Errorf("%s is %v", name, entry)
		}
	}
	if len(all) != 2 || all["shop/two"] == nil {
		t.Errorf("names are %v", slices.Sorted(maps.Keys(all)))
	}
}

// Versions are those of content: there and back is as if nothing had been.
func TestVersionsAreThoseOfContent(t *testing.T) {
	t.Parallel()
	m, r := newMade(t), service("first", "reviews", "reviews.example")
	m.apply(upserts(r, service("first", "other", "other.example"))...)
	version := func() string { return m.in(entries)["shop/reviews"].Metadata.Version }
	before, other := version(), m.in(entries)["shop/other"].Metadata.Version
	u := m.apply(upserts(endpoint(r, "10.0.0.1", model.Healthy))...)
	if version() == before || m.in(entries)["shop/other"].Metadata.Version != other {
		t.Error("the version did not follow the content")
	}
	for _, changed := range u.Changed {
		if changed.Name != "shop/reviews" {
			t.Errorf("a change of one service is one of %s, too", changed.Name)
		}
	}
	m.apply(model.Delete{Record: endpoint(r, "10.0.0.1", model.Healthy)})
	if version() != before {
		t.Error("back at the beginning it has another version")
	}
}

// Synthetic entries say which of their parts changed, and who is not ready.
func TestSyntheticEntriesTellTheirParts(t *testing.T) {
	t.Parallel()
	m, r := newMade(t), service("first", "reviews", "reviews.example")
	m.apply(upserts(r, endpoint(r, "10.0.0.1", model.Healthy), endpoint(r, "10.0.0.2", model.Unhealthy), endpoint(r, "fd00::1", model.Draining))...)
	for network, health := range map[string]model.Health{"n": model.Healthy, "ill": model.Unhealthy} { // the address serves
		e := endpoint(r, "10.0.0.3", health)
		spec, _ := e.Spec.(model.Endpoint)
		spec.Network, e.Name = network, e.Name+network
		e.Spec = spec
		m.apply(upserts(e)...)
	}
	says := func() map[string]string { return m.in(mcp.Synthetic)["shop/reviews"].Metadata.Annotations }
	first := says()
	if first[mcp.NotReadyEndpoints] != "10.0.0.2:80,[fd00::1]:80" {
		t.Errorf("not ready are %q", first[mcp.NotReadyEndpoints])
	}
	if len(m.in(entries)["shop/reviews"].Metadata.Annotations) != 0 {
		t.Error("an entry that is not synthetic has the annotations, too")
	}
	m.apply(upserts(endpoint(r, "10.0.0.2", model.Healthy))...)
	second := says()
	spec := r.Spec.(model.Service)
	spec.SubjectAltNames = model.ListOf("x")
	r.Spec = spec
	m.apply(upserts(r)...)
	third := says()
	if first[mcp.ServiceVersion] != second[mcp.ServiceVersion] || first[mcp.EndpointsVersion] == second[mcp.EndpointsVersion] {
		t.Errorf("an endpoint changed, and versions went from %v to %v", first, second)
	}
	if second[mcp.ServiceVersion] == third[mcp.ServiceVersion] || second[mcp.EndpointsVersion] != third[mcp.EndpointsVersion] {
		t.Errorf("the definition changed, and versions went from %v to %v", second, third)
	}
}

// A Sidecar passes with all that it says, also what has no effect on Isthmus.
func TestSidecarPassesWhole(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	for object := range istio.Read([]byte(`
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop, labels: {team: a}}
spec:
  workloadSelector: {labels: {app: cart}}
  egress: [{hosts: ["./*"], port: {number: 9080, name: http, protocol: HTTP}}]
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
`)) {
		record := object.Listed("").Record
		record.Source = "first"
		m.apply(upserts(record)...)
	}
	r, spec := m.in("istio/networking/v1alpha3/sidecars")["shop/default"], &networking.Sidecar{}
	if err := r.GetBody().UnmarshalTo(spec); err != nil {
		t.Fatal(err)
	}
	if spec.OutboundTrafficPolicy == nil || spec.Egress[0].Port.GetNumber() != 9080 || spec.WorkloadSelector.Labels["app"] != "cart" || r.Metadata.Labels["team"] != "a" {
		t.Errorf("it says %v", r)
	}
}

// An object that a file has is JSON inside, and becomes a message. One that cannot
// be made is left out, and it is said why.
func TestObjectsInJSONBecomeMessages(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	for object := range istio.Read([]byte(`
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: vms, namespace: shop, annotations: {why: b}}
spec: {template: {serviceAccount: cart, ports: {http: 8080}}}
`)) {
		record := object.Listed("").Record
		record.Source = "first"
		m.apply(upserts(record)...)
	}
	const groups = "istio/networking/v1alpha3/workloadgroups"
	r, spec := m.in(groups)["shop/vms"], &networking.WorkloadGroup{}
	if err := r.GetBody().UnmarshalTo(spec); err != nil {
		t.Fatal(err)
	}
	if spec.Template.ServiceAccount != "cart" || r.Metadata.Annotations["why"] != "b" {
		t.Errorf("it says %v", r)
	}
	bad := model.Record{Ref: model.Ref{Kind: "WorkloadGroup", Key: model.Key{Source: "first", Namespace: "shop", Name: "bad"}}, Spec: model.OpaqueOf([]byte(`{"spec": {"template": 1}}`))}
	m.apply(upserts(bad, service("first", "worse", "bad_host"))...)
	left := maps.Collect(m.translator.LeftOut())
	if len(m.in(groups)) != 1 || !strings.Contains(left["WorkloadGroup shop/bad"], "istio.networking.v1alpha3.WorkloadGroup") || !strings.Contains(left["ServiceEntry shop/bad_host"], "bad_host") {
		t.Errorf("left out are %v", left)
	}
	m.apply(model.Delete{Record: bad}, model.Delete{Record: service("first", "worse")})
	if left := maps.Collect(m.translator.LeftOut()); len(left) != 0 {
		t.Errorf("gone, and left out are %v", left)
	}
}

// Over xDS a resource is wrapped once more.
func TestResourcesAreWrappedForXDS(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, upserts(service("first", "reviews", "reviews.example")))
	w := resource.NewTranslator(resource.OverXDS(), resource.Options{Wrapped: true}).Step(builder.Snapshot(), catalog.Change{}, true, "").World
	found := 0
	for row, typed := range resource.OverXDS() {
		subject, ok := w.Find(w.View(world.Row(row), world.Client{}), world.Row(row), "shop/reviews")
		if ok != (typed.Kind.Name == "ServiceEntry") {
			t.Errorf("%s: found is %t", typed.Name, ok)
		}
		if !ok {
			continue
		}
		found++
		wrapped, r := &anypb.Any{}, &mcpapi.Resource{}
		if err := proto.Unmarshal(subject.Encode().Body, wrapped); err != nil {
			t.Fatal(err)
		}
		if err := wrapped.UnmarshalTo(r); err != nil || r.Metadata.Name != "shop/reviews" {
			t.Errorf("%v: %v", err, r)
		}
	}
	if found != 3 {
		t.Errorf("it has %d versions", found)
	}
}

// A WorkloadEntry passes, selected or not, as long as it should be given traffic.
func TestWorkloadEntryPasses(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	vm := func(health model.Health) model.Record {
		return model.Record{Ref: model.Ref{Kind: model.KindWorkload, Key: model.Key{Source: "first", Namespace: "shop", Name: "vm"}}, Spec: model.Workload{
			Meta: model.Meta{Labels: model.MapOf(map[string]string{"team": "a"})},
			Endpoint: model.Endpoint{
				Address: "10.0.0.1", Ports: model.MapOf(map[string]uint32{"http": 8080}), Labels: model.MapOf(map[string]string{"app": "cart"}),
				Locality: model.Locality{Region: "r", Zone: "z"}, Weight: 3, ServiceAccount: "cart", Network: "vms", Health: health,
			},
		}}
	}
	m.apply(upserts(vm(model.Healthy))...)
	const workloads = "istio/networking/v1alpha3/workloadentries"
	r, spec := m.in(workloads)["shop/vm"], &networking.WorkloadEntry{}
	if err := r.GetBody().UnmarshalTo(spec); err != nil {
		t.Fatal(err)
	}
	want := &networking.WorkloadEntry{
		Address: "10.0.0.1", Ports: map[string]uint32{"http": 8080}, Labels: map[string]string{"app": "cart"}, Locality: "r/z", Weight: 3, ServiceAccount: "cart", Network: "vms",
	}
	if !proto.Equal(spec, want) || r.Metadata.Labels["team"] != "a" {
		t.Errorf("it says %v", r)
	}
	m.apply(upserts(vm(model.Unhealthy))...)
	if all := m.in(workloads); len(all) != 0 {
		t.Errorf("it should be given no traffic, and is there as %v", all)
	}
}

// A service that is local to each cluster is served to nobody: no object says so of it.
func TestClusterLocalServicesAreNotServed(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	of := service("a", "api", "kubernetes.default.svc.cluster.local")
	spec, _ := of.Spec.(model.Service)
	m.apply(upserts(of, endpoint(of, "192.0.2.1", model.Healthy))...)
	if len(m.in(entries)) == 0 {
		t.Fatal("there is no ServiceEntry of any other service")
	}
	spec.Traffic.ClusterLocal = true
	of.Spec = spec
	m.apply(upserts(of)...)
	if got := m.in(entries); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

// A ServiceEntry has one resolution, so it has the ports with the resolution of the first record. The others are said.
func TestPortsOfAnotherResolutionAreLeftOut(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	first, second := service("a", "api", "api.example"), service("b", "api", "api.example")
	spec, _ := second.Spec.(model.Service)
	spec.Resolution, spec.Ports = model.ResolutionDNS, model.ListOf(model.Port{Number: 443, Name: "tls", Protocol: "TLS"})
	second.Spec = spec
	m.apply(upserts(first, second, endpoint(first, "192.0.2.1", model.Healthy), endpoint(first, "192.0.2.2", model.Unhealthy), endpoint(second, "api.internal.example", model.Unhealthy))...)
	for name := range m.in(entries) {
		r, entry := m.entry(entries, name)
		if len(entry.Ports) != 1 || entry.Ports[0].Number != 80 || entry.Resolution != networking.ServiceEntry_STATIC {
			t.Errorf("it is written as %v", entry)
		}
		if strings.Contains(fmt.Sprint(r.Metadata), "api.internal.example") {
			t.Errorf("an endpoint of a port that is left out is said to be not ready: %v", r.Metadata)
		}
	}
	for s := range m.builder.Snapshot().Services() {
		if said := resource.NotOffered(s); !strings.Contains(said, "1: ports with another resolution") {
			t.Errorf("it is said %q", said)
		}
	}
}
