package catalog

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// watchOf is a watch that yields one snapshot and ends.
func watchOf(revision uint64, names ...string) iter.Seq2[model.Batch, error] {
	return func(yield func(model.Batch, error) bool) {
		yield(model.Batch{Events: append(carried(names...), model.EndOfSnapshot{Revision: revision})}, nil)
	}
}

func carried(names ...string) (events []model.Event) {
	for _, name := range names {
		ref := model.Ref{Kind: "Novelty", Key: model.Key{Source: "a", Namespace: "ns", Name: name}}
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Spec: model.Opaque{}}})
	}
	return events
}

// A panic in the merge, in a change of the order or in the watch ends the run. What was
// published stays, and after another run readers are given the difference.
func TestAPanicCostsOneRun(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(m *Merger) error{
		"merge": func(m *Merger) error {
			r := &run{Merger: m, builder: newBuilder(m.order), live: true}
			r.builder.opaques.unite = func(OpaqueKey, []*member) *Opaque { panic("merge") }
			return r.take(model.Batch{Events: carried("two")})
		},
		"order": func(m *Merger) error {
			r := &run{Merger: m, builder: newBuilder(m.order), live: true}
			r.builder.Apply(1, carried("one"))
			r.builder.opaques.unite = func(OpaqueKey, []*member) *Opaque { panic("order") }
			return r.arrange(Order{Sources: []string{"a"}})
		},
		"watch": func(m *Merger) error {
			return m.Run(func(func(model.Batch, error) bool) { panic("watch") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var published []*Snapshot
			var came []string
			m := NewMerger(Order{}, func(s *Snapshot, c Change) {
				published = append(published, s)
				for key := range c.Opaques {
					came = append(came, key.Name)
				}
			})
			if err := m.Run(watchOf(1, "one")); err != nil {
				t.Fatal(err)
			}
			p, ok := errors.AsType[*PanicError](fail(m))
			if !ok || p.Value != name || len(p.Stack) == 0 {
				t.Fatalf("the run ends with %v", p)
			}
			if len(published) != 1 {
				t.Errorf("%d snapshots are published", len(published))
			}
			if err := m.Run(watchOf(2, "one", "two")); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(came, []string{"one", "two"}) || published[1].Revision != 2 {
				t.Errorf("%q came, up to revision %d", came, published[1].Revision)
			}
		})
	}
}
