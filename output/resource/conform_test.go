package resource_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/push/pushtest"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// small is a table with a row of everything that differs: an alias, a synthetic row,
// a kind that is carried, and a type of which there is nothing.
func small() resource.Table {
	keep := []string{
		"core/v1alpha1/MeshConfig", "networking.istio.io/v1/ServiceEntry", "networking.istio.io/v1alpha3/ServiceEntry",
		"networking.istio.io/v1/Sidecar", "networking.istio.io/v1/WorkloadEntry", "networking.istio.io/v1/DestinationRule", "networking.istio.io/v1/WorkloadGroup",
		"istio/networking/v1alpha3/synthetic/serviceentries",
	}
	all := slices.Concat(resource.OverXDS(), resource.Collections())
	return slices.DeleteFunc(all, func(row resource.Type) bool { return !slices.Contains(keep, row.Name) })
}

// The producer passes what every producer must: what a change does to the index is
// what making it anew would do.
func TestResourcesAreAWellBehavedProducer(t *testing.T) {
	pushtest.Run(t, pushtest.Addition{
		Rows:  small().Types(nil),
		Begin: func() pushtest.World { return newMirror() },
		Client: func(t *rapid.T) world.Client {
			return world.Client{Kind: "istiod", Revision: rapid.SampledFrom([]string{"", "red", "blue"}).Draw(t, "revision")}
		},
		Name: func(t *rapid.T, _ world.Row) string {
			return rapid.SampledFrom([]string{"a/", "b/"}).Draw(t, "in") + rapid.SampledFrom([]string{"one", "two", "x.com", "y.com"}).Draw(t, "name")
		},
	})
}

// mirror is a catalog that is changed at random. What a client sees of it is worked
// out from all its records at once.
type mirror struct {
	builder    *catalog.Builder
	translator *resource.Translator
	records    map[model.Ref]model.Record
	revision   uint64
	anew       world.World // of the records there are; nil if it was not asked for
}

var mergeOrder = []string{"first", "second"}

func newMirror() *mirror {
	return &mirror{
		builder: catalog.NewBuilder(mergeOrder), records: map[model.Ref]model.Record{},
		translator: resource.NewTranslator(small(), resource.Options{}),
	}
}

func (m *mirror) Step(t *rapid.T) world.Update {
	m.revision++
	events := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 4).Draw(t, "events")
	for _, event := range events {
		switch e := event.(type) {
		case model.Upsert:
			m.records[e.Record.Ref] = e.Record
		case model.Delete:
			delete(m.records, e.Record.Ref)
		}
	}
	m.anew = nil
	change := m.builder.Apply(m.revision, events)
	return m.translator.Step(m.builder.Snapshot(), change, true, "istio-system")
}

func (m *mirror) Sees(r world.Row, c world.Client) map[string]world.Encoded {
	if m.anew == nil {
		builder := catalog.NewBuilder(mergeOrder)
		var events []model.Event
		for _, ref := range slices.SortedFunc(maps.Keys(m.records), model.Ref.Compare) {
			events = append(events, model.Upsert{Record: m.records[ref]})
		}
		builder.Apply(1, events)
		m.anew = resource.NewTranslator(small(), resource.Options{}).Step(builder.Snapshot(), catalog.Change{}, true, "").World
	}
	all := map[string]world.Encoded{}
	view := m.anew.View(r, c)
	for name := range m.anew.Names(view, r) {
		if subject, ok := m.anew.Find(view, r, name); ok {
			all[name] = subject.Encode()
		}
	}
	return all
}

func drawEvent(t *rapid.T) model.Event {
	r := model.Record{Ref: model.Ref{Key: model.Key{
		Source:    rapid.SampledFrom(mergeOrder).Draw(t, "source"),
		Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"one", "two", "x.com"}).Draw(t, "name"),
	}}}
	meta := model.Meta{Labels: model.MapOf(map[string]string{"istio.io/rev": rapid.SampledFrom([]string{"", "red"}).Draw(t, "for")})}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		r.Kind, r.Spec = model.KindScope, model.Scope{
			Meta: meta, Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*"}).Draw(t, "hosts")),
			Content: rapid.SampledFrom([]string{"", `{"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}`}).Draw(t, "content"),
		}
	case 1:
		r.Kind, r.Spec = "DestinationRule", model.Opaque{Meta: meta, Type: "t", Content: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "body")}
	case 2:
		r.Kind, r.Spec = "WorkloadGroup", model.Opaque{Content: rapid.SampledFrom([]string{
			`{"spec": {"template": {"serviceAccount": "one"}}}`, `{"metadata": {"labels": {"istio.io/rev": "red"}}, "spec": {}}`, `[]`, `{"spec": 1}`,
		}).Draw(t, "content")}
	case 3:
		return drawEndpoint(t, r)
	case 4:
		r.Kind, r.Spec = model.KindWorkload, model.Workload{Meta: meta, Endpoint: model.Endpoint{
			Address: "10.0.0.9", Health: rapid.SampledFrom([]model.Health{model.Healthy, model.Unhealthy}).Draw(t, "health"),
		}}
	default:
		r.Kind, r.Spec = model.KindService, model.Service{
			Meta:     meta,
			Hosts:    model.ListOf(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x.com", "y.com", "one", "X.com", "bad host"}), 1, 3, rapid.ID).Draw(t, "hosts")...),
			Ports:    model.ListOf([]model.Port{{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 81, Name: "tcp", Protocol: "TCP"}}[:rapid.IntRange(1, 2).Draw(t, "ports")]...),
			Location: model.MeshInternal, Resolution: rapid.SampledFrom([]model.Resolution{model.ResolutionStatic, model.ResolutionDNS}).Draw(t, "resolution"),
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
		return model.Delete{Record: r}
	}
	return model.Upsert{Record: r}
}

func drawEndpoint(t *rapid.T, r model.Record) model.Event {
	r.Owner = model.Ref{Kind: model.KindService, Key: r.Key}
	address := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(t, "address")
	r.Kind, r.Name = model.KindEndpoint, r.Name+"/"+address
	e := model.Endpoint{Address: address, Health: rapid.SampledFrom([]model.Health{model.Healthy, model.Unhealthy}).Draw(t, "health")}
	if rapid.Bool().Draw(t, "some ports") {
		e.Exact, e.Ports = true, model.MapOf(map[string]uint32{rapid.SampledFrom([]string{"http", "tcp"}).Draw(t, "port"): 8080})
	}
	r.Spec = e
	if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
		return model.Delete{Record: r}
	}
	return model.Upsert{Record: r}
}
