package envoy

import (
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A source that turns stale and live again sends clients the health that others know, and nothing else.
func TestStaleSourceSendsHealthAlone(t *testing.T) {
	t.Parallel()
	by := func(source string, health model.Health, weight uint32) (events []model.Event) {
		for _, host := range []string{"differ.com", "agree.com", "alone.com"} {
			if source == "second" && host == "alone.com" {
				continue
			}
			e := model.Endpoint{Address: "10.0.0.1", Weight: weight}
			if host == "differ.com" {
				e.Health = health
			}
			for _, event := range inNetworks(host, e) {
				record := event.(model.Upsert).Record
				if record.Source = source; record.Owner != (model.Ref{}) {
					record.Owner.Source = source
				}
				events = append(events, model.Upsert{Record: record})
			}
		}
		return events
	}
	prepared := NewTranslator().Prepare()
	builder := catalog.NewBuilder([]string{"first", "second"})
	builder.Apply(1, slices.Concat(by("first", model.Healthy, 5), by("second", model.Unhealthy, 1)))
	turn := func(since time.Time) []world.Changed {
		ref := model.Ref{Kind: model.KindSource, Key: model.Key{Source: "first", Name: "first"}}
		change := builder.Apply(2, []model.Event{model.Upsert{Record: model.Record{Ref: ref, Spec: model.SourceMark{StaleSince: since}}}})
		change.Primed = false // the mark is new here, not in a process
		return changesOf(prepared, builder.Snapshot(), change)
	}
	turn(time.Time{})
	for _, since := range []time.Time{time.Unix(1e9, 0), {}} {
		changes := turn(since)
		for _, c := range changes {
			if c.Row != EndpointType {
				t.Errorf("%+v is sent", c)
			}
		}
		if len(changes) != 1 || changes[0].Name != names.Cluster("differ.com", 80) {
			t.Errorf("sent are %+v", changes)
		}
		service, _ := builder.Snapshot().Service(catalog.KeyOf("n", "differ.com"))
		for e := range service.Endpoints(80).All() {
			want := model.Healthy
			if !since.IsZero() {
				want = model.Unhealthy
			}
			if e.Health != want || e.Weight != 5 {
				t.Errorf("stale since %s, it is served as %q with weight %d", since, e.Health, e.Weight)
			}
		}
	}
}
