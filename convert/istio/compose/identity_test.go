package compose

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// drawLayout draws a form for the endpoints of a service.
func drawLayout(t *rapid.T) Layout {
	l := Layout{ShardSize: rapid.IntRange(1, 5).Draw(t, "shard size")}
	if rapid.Bool().Draw(t, "workloads") {
		l.Workloads = ownLabels()
	}
	return l
}

func ownLabels() map[string]string { return map[string]string{"isthmus.io/instance": "test"} }

// What a service says is there again when the objects that it was made into are
// read, but for what the package says is lost. So it is for any number of objects, in
// either form.
func TestModelToObjectToModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := servicesOf(drawSound(t))[0]
		made := FromService(before, drawLayout(t))
		manifests, events := readBack(t, made)
		if len(made.LeftOut) > 0 {
			t.Fatalf("left out: %v", made.LeftOut)
		}
		all := servicesOf(events)
		if len(all) != 1 {
			t.Fatalf("%d services come back:\n%s", len(all), manifests)
		}
		if diff := gocmp.Diff(said(before), said(all[0])); diff != "" {
			t.Fatalf("a service comes back otherwise (-before +after):\n%s\n%s", diff, manifests)
		}
	})
}

// What a user says of one host is written again as it was, in the one form that
// Isthmus has for it.
func TestObjectToModelToObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entry := drawEntry(t)
		r := istio.FromMessage(istio.Object{Namespace: "shop", Name: "x", Spec: entry})
		if !r.Valid() {
			t.Fatalf("invalid: %v\n%s", r.Problems, istio.AppendSpec(nil, entry))
		}
		made := FromService(servicesOf(eventsOf(r))[0], Layout{ShardSize: MostEndpoints})
		if len(made.Parts) != 1 || len(made.LeftOut) > 0 {
			t.Fatalf("it becomes %d objects, left out: %v", len(made.Parts), made.LeftOut)
		}
		want, got := normal(entry), made.Parts[0].Spec
		if !proto.Equal(want, got) {
			t.Fatalf("written:\n%s\nwritten again:\n%s", istio.AppendSpec(nil, want), istio.AppendSpec(nil, got))
		}
	})
}

// The same for a Sidecar that only narrows what its workloads see.
func TestSidecarToScopeToSidecar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"./*", "*/*", "prod/a.example", "~/*", "prod/*.a.example"}), 1, 4).Draw(t, "hosts")
		sidecar := &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: hosts}}}
		if labels := drawLabels(t); len(labels) > 0 {
			sidecar.WorkloadSelector = &networking.WorkloadSelector{Labels: labels}
		}
		r := istio.FromMessage(istio.Object{Namespace: "shop", Name: "x", Spec: sidecar})
		if !r.Valid() {
			t.Fatalf("invalid: %v", r.Problems)
		}
		for scope := range snapshotOf(eventsOf(r)).Scopes() {
			if got := FromScope(scope); got.Name != "x" || got.Namespace != "shop" || !proto.Equal(sidecar, got.Spec) {
				t.Fatalf("%s comes back as %s %s", istio.AppendSpec(nil, sidecar), got, istio.AppendSpec(nil, got.Spec))
			}
		}
	})
}

func snapshotOf(events []model.Event) *catalog.Snapshot {
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	return builder.Snapshot()
}

func servicesOf(events []model.Event) []*catalog.Service {
	return slices.Collect(snapshotOf(events).Services())
}

func eventsOf(r istio.Reading) (events []model.Event) {
	object := r.Listed("x.yaml")
	for _, record := range append(object.Owned, object.Record) {
		events = append(events, model.Upsert{Record: record})
	}
	return events
}

// word is what a service says, apart from whose word it is.
type word struct {
	Addresses, ExportTo, Names []string
	Ports                      []model.Port
	Location                   model.Location
	Resolution                 model.Resolution
	Endpoints                  map[string]string
}

func said(s *catalog.Service) word {
	w := word{
		Addresses: slices.AppendSeq([]string{}, s.Base.Addresses.All()), ExportTo: slices.AppendSeq([]string{}, s.ExportTo.All()),
		Names: slices.AppendSeq([]string{}, s.SubjectAltNames.All()),
		Ports: s.Ports, Location: s.Location, Resolution: s.Resolution, Endpoints: map[string]string{},
	}
	for _, port := range s.Ports {
		for e := range s.Endpoints(port.Number).All() {
			at := fmt.Sprintf("%d → %s:%d in %s", port.Number, e.Address, e.Port, e.Network)
			labels := e.Labels.Map()
			for name := range (Layout{Workloads: ownLabels()}).Selector(s.Key.Host) {
				delete(labels, name) // what is selected has them besides
			}
			w.Endpoints[at] = fmt.Sprintf("%v %s %v weight %d of %s, %s", labels, e.Network, e.Locality, e.Weight, e.ServiceAccount, e.Health)
		}
	}
	return w
}

// drawSound draws the records of a service of which nothing is lost.
func drawSound(t *rapid.T) []model.Event {
	resolution := rapid.SampledFrom([]model.Resolution{
		model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS, model.ResolutionNone,
	}).Draw(t, "resolution")
	var ports []model.Port
	for i, number := range rapid.SliceOfNDistinct(rapid.Uint32Range(80, 90), 1, 4, rapid.ID).Draw(t, "ports") {
		ports = append(ports, model.Port{
			Number: number, Name: fmt.Sprintf("p%d", i), Protocol: rapid.SampledFrom([]string{"HTTP", "GRPC", "TCP", ""}).Draw(t, "protocol"),
			TargetPort: rapid.SampledFrom([]uint32{0, 8080, number}).Draw(t, "target"),
		})
	}
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "shop", Name: "x"}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
		Hosts: model.ListOf("x.example.com"), Ports: model.ListOf(ports...), Resolution: resolution,
		Location:        rapid.SampledFrom([]model.Location{model.MeshInternal, model.MeshExternal}).Draw(t, "location"),
		Addresses:       model.ListOf(drawTexts(t, "10.1.0.1", "fd00::1")...),
		ExportTo:        model.ListOf(drawTexts(t, ".", "prod")...),
		SubjectAltNames: model.ListOf(drawTexts(t, "spiffe://a", "b.example")...),
	}}}}
	if resolution == model.ResolutionNone {
		return events
	}
	// Somebody serves every port: names are looked up for ports that are served only.
	everywhere := model.Endpoint{Address: "10.0.0.1"}
	for i, e := range append(drawEndpoints(t, ports, resolution), everywhere) {
		owned := ref
		owned.Kind, owned.Name = model.KindEndpoint, fmt.Sprintf("x/%d", i)
		events = append(events, model.Upsert{Record: model.Record{Ref: owned, Owner: ref, Spec: e}})
	}
	return events
}

func drawEndpoints(t *rapid.T, ports []model.Port, resolution model.Resolution) (list []model.Endpoint) {
	addresses := []string{"10.0.0.2", "10.0.0.3", "fd00::1", "unix:///run/x"}
	if resolution == model.ResolutionDNS {
		addresses = []string{"10.0.0.2", "a.example.com", "b.example.com", "fd00::1"}
	}
	for _, address := range drawTexts(t, addresses...) {
		e := model.Endpoint{
			Address: address, Labels: model.MapOf(drawLabels(t)), Network: rapid.SampledFrom([]string{"", "net"}).Draw(t, "network"),
			Locality: rapid.SampledFrom([]model.Locality{{}, {Region: "eu"}, {Region: "eu", Zone: "eu-1"}, {Region: "eu", Zone: "eu-1", SubZone: "a/b"}}).Draw(t, "locality"),
			Weight:   rapid.Uint32Range(0, 2).Draw(t, "weight"), ServiceAccount: rapid.SampledFrom([]string{"", "web"}).Draw(t, "account"),
			Exact: rapid.Bool().Draw(t, "exact"),
		}
		own := map[string]uint32{}
		for _, p := range ports {
			if rapid.Bool().Draw(t, "own port") {
				own[p.Name] = rapid.Uint32Range(9000, 9002).Draw(t, "port")
			}
		}
		e.Ports = model.MapOf(own)
		if list = append(list, e); rapid.IntRange(0, 3).Draw(t, "another network") == 0 {
			e.Network, e.Weight = "other", 3
			list = append(list, e)
		}
	}
	return list
}

func drawLabels(t *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"app", "example.com/tier", "Example.com/x"}), rapid.SampledFrom([]string{"", "web", "a.b_c"}), 0, 3).Draw(t, "labels")
}

// drawTexts draws some of the texts, each once.
func drawTexts(t *rapid.T, texts ...string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(texts), 0, len(texts), rapid.ID).Draw(t, "of "+texts[0])
}

// drawEntry draws a valid ServiceEntry of one host, in whatever form users write.
func drawEntry(t *rapid.T) *networking.ServiceEntry {
	resolution := rapid.SampledFrom([]networking.ServiceEntry_Resolution{
		networking.ServiceEntry_STATIC, networking.ServiceEntry_DNS, networking.ServiceEntry_NONE,
	}).Draw(t, "resolution")
	entry := &networking.ServiceEntry{
		Hosts: []string{"x.example.com"}, Resolution: resolution,
		Addresses:       drawTexts(t, "10.1.0.1", "FD00::0001", "::ffff:10.0.0.1"),
		ExportTo:        drawTexts(t, ".", "prod"),
		SubjectAltNames: drawTexts(t, "spiffe://a", "b.example"),
		Location:        networking.ServiceEntry_Location(rapid.Int32Range(0, 1).Draw(t, "location")),
	}
	for _, number := range rapid.SliceOfNDistinct(rapid.Uint32Range(80, 90), 1, 4, rapid.ID).Draw(t, "ports") {
		entry.Ports = append(entry.Ports, &networking.ServicePort{
			Number: number, Name: fmt.Sprintf("p%d", number), TargetPort: rapid.SampledFrom([]uint32{0, 8080}).Draw(t, "target"),
			Protocol: rapid.SampledFrom([]string{"http", "HTTP", "gRPC", "tcp", ""}).Draw(t, "protocol"),
		})
	}
	if resolution == networking.ServiceEntry_NONE {
		return entry
	}
	for _, address := range drawTexts(t, "10.0.0.9", "10.0.0.10", "FD00::1", "fd00:0::2") {
		e := &networking.WorkloadEntry{
			Address: address, Labels: drawLabels(t), Weight: rapid.Uint32Range(0, 2).Draw(t, "weight"),
			Network: rapid.SampledFrom([]string{"", "net"}).Draw(t, "network"), ServiceAccount: rapid.SampledFrom([]string{"", "web"}).Draw(t, "account"),
			Locality: rapid.SampledFrom([]string{"", "eu", "eu/eu-1/a", "eu/eu-1/a/b", "eu//"}).Draw(t, "locality"),
		}
		for _, p := range entry.GetPorts() {
			if rapid.Bool().Draw(t, "own port") {
				if e.Ports == nil {
					e.Ports = map[string]uint32{}
				}
				e.Ports[p.GetName()] = rapid.SampledFrom([]uint32{8080, 9090, p.GetNumber()}).Draw(t, "port")
			}
		}
		entry.Endpoints = append(entry.Endpoints, e)
	}
	return entry
}

// normal is the one form that Isthmus has for an entry: addresses and protocols
// written one way, ports and endpoints in their order, and nothing said twice.
func normal(entry *networking.ServiceEntry) *networking.ServiceEntry {
	entry = proto.CloneOf(entry)
	canonical := func(s string) string {
		if ip, err := netip.ParseAddr(s); err == nil {
			return ip.Unmap().String()
		}
		return s
	}
	for i := range entry.GetAddresses() {
		entry.Addresses[i] = canonical(entry.GetAddresses()[i])
	}
	usual := map[string]uint32{}
	for _, p := range entry.GetPorts() {
		p.Protocol = strings.ToUpper(p.GetProtocol())
		usual[p.GetName()] = cmp.Or(p.GetTargetPort(), p.GetNumber())
	}
	slices.SortFunc(entry.GetPorts(), func(a, b *networking.ServicePort) int { return cmp.Compare(a.GetNumber(), b.GetNumber()) })
	for _, e := range entry.GetEndpoints() {
		e.Address, e.Locality = canonical(e.GetAddress()), strings.TrimRight(e.GetLocality(), "/")
		for name, at := range e.GetPorts() {
			if at == usual[name] {
				delete(e.GetPorts(), name)
			}
		}
	}
	slices.SortFunc(entry.GetEndpoints(), func(a, b *networking.WorkloadEntry) int { return cmp.Compare(a.GetAddress(), b.GetAddress()) })
	return entry
}
