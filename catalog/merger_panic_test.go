package catalog_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/catalog/split"
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

// A panic in the merge or in the watch ends the run. What was published stays, and after
// another run readers are given the difference.
func TestAPanicCostsOneRun(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(m *merger.Merger) error{
		"merge": func(m *merger.Merger) error {
			// A missing split is a fault of the caller.
			bad := catalog.Order{Splits: map[catalog.ServiceKey]*split.Split{{Host: "h"}: nil}}
			return m.Run(func(yield func(model.Batch, error) bool) {
				watchOf(1, "one")(yield)
				m.Arrange(bad)
				for yield(model.Batch{}, nil) {
				}
			})
		},
		"watch": func(m *merger.Merger) error {
			return m.Run(func(func(model.Batch, error) bool) { panic("watch") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var came []string
			var revision uint64
			m := merger.New(catalog.Order{}, func(s *catalog.Snapshot, c catalog.Change) {
				revision = s.Revision
				for key := range c.Opaques {
					came = append(came, key.Name)
				}
			})
			if err := m.Run(watchOf(1, "one")); err != nil {
				t.Fatal(err)
			}
			if p, ok := errors.AsType[*merger.PanicError](fail(m)); !ok || len(p.Stack) == 0 {
				t.Fatalf("the run ends with %v", p)
			}
			if !slices.Equal(came, []string{"one"}) {
				t.Errorf("%q came before", came)
			}
			if err := m.Run(watchOf(2, "one", "two")); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(came, []string{"one", "two"}) || revision != 2 {
				t.Errorf("%q came, up to revision %d", came, revision)
			}
		})
	}
}
