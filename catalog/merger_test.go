package catalog_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/model"
)

// merging publishes what a merger makes of watches, each in an order of its own.
type merging struct {
	*merger.Merger
	published
}

// run has the merger follow another watch, in another order.
func (m *merging) run(watch iter.Seq2[model.Batch, error], order []string) error {
	m.Arrange(catalog.Order{Sources: order})
	return m.Run(watch)
}

func newMerging() *merging {
	m := &merging{}
	m.Merger = merger.New(catalog.Order{}, func(s *catalog.Snapshot, c catalog.Change) {
		m.snapshots, m.changes = append(m.snapshots, s), append(m.changes, c)
	})
	return m
}

// Two sources that disagree change places: readers get a change of that one service.
func TestANewOrderIsOneChange(t *testing.T) {
	t.Parallel()
	ended := errors.New("another order")
	first, second := service("a", "shop", "shop"), service("b", "shop", "shop")
	second.Spec = model.Service{
		Hosts: model.ListOf("shop"), Location: model.MeshExternal, Resolution: model.ResolutionStatic,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}
	all := upserts(first, second, one, service("c", "bar", "bar"))
	m := newMerging()
	for _, order := range [][]string{{"a", "b", "c"}, {"b", "a", "c"}} {
		if err := m.run(script(ended, batch(all[:2]), batch(all[2:], end(4))), order); !errors.Is(err, ended) {
			t.Fatal(err)
		}
	}
	want := [][]string{{"ns/bar", "ns/shop", "ns/shop 80 10.0.0.1:80"}, {"ns/shop"}}
	if diff := cmp.Diff(want, m.names()); diff != "" {
		t.Fatalf("published (-want +got):\n%s", diff)
	}
	if s, _ := m.snapshots[1].Service(shop); s.Location != model.MeshExternal || s.Sources()[0] != "b" {
		t.Errorf("it is %s, of %q", s.Location, s.Sources())
	}
}

// A watch that ends inside its snapshot leaves what was published.
func TestAnOrderThatComesTooSoonChangesNothing(t *testing.T) {
	t.Parallel()
	ended := errors.New("another order")
	m := newMerging()
	_ = m.run(script(ended, batch(upserts(shopRecord, barRecord), end(2))), []string{"a", "b"})
	_ = m.run(script(ended, batch(upserts(shopRecord))), []string{"a", "x", "b"})
	if len(m.snapshots) != 1 {
		t.Errorf("published %d snapshots", len(m.snapshots))
	}
	_ = m.run(script(ended, batch(upserts(shopRecord, barRecord), end(2))), []string{"x", "a", "b"})
	if diff := cmp.Diff([][]string{{"ns/bar", "ns/shop"}, {}}, m.names()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// Whatever orders follow one another, the catalog ends as if it had always had
// the last one, and every change between is complete.
func TestOrdersLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ended := errors.New("another order")
		now, m, last := state{}, newMerging(), order
		for i, commit := range drawHistory(t) {
			now.take(commit)
			last = rapid.Permutation(sources).Draw(t, "order")[:rapid.IntRange(0, len(sources)).Draw(t, "named")]
			if err := m.run(script(ended, batch(now.events(), end(uint64(i+1)))), last); !errors.Is(err, ended) {
				t.Fatal(err)
			}
		}
		old := catalog.Empty()
		for i, s := range m.snapshots {
			mustAccountFor(t, old, s, m.changes[i])
			old = s
		}
		mustEqual(t, "the last order", seen(t, old), seen(t, build(slices.Clone(last), now)))
	})
}

// mustAccountFor demands that whatever a change does not name is the same.
func mustAccountFor(t *rapid.T, old, now *catalog.Snapshot, change catalog.Change) {
	before, after := seen(t, old), seen(t, now)
	mustName(t, before.Opaques, after.Opaques, change.Opaques, old.Opaque, now.Opaque)
	for key := range after.Services {
		if _, named := change.Services[key]; !named && !cmp.Equal(before.Services[key], after.Services[key]) {
			t.Fatalf("%s changed and is not named", key)
		}
	}
	for key := range before.Services {
		_, stays := after.Services[key]
		if c, named := change.Services[key]; !stays && (!named || c.New != nil) {
			t.Fatalf("%s went and is not named", key)
		}
	}
}
