package catalog_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/model"
)

// drawOrder draws the order after another one: a source is inserted, removed or moved,
// everything is shuffled, or nothing is.
func drawOrder(t *rapid.T, order []string) []string {
	next, name := slices.Clone(order), pick(t, sources...)
	at := slices.Index(next, name)
	switch pick(t, "move", "remove", "shuffle", "strangers", "none") {
	case "move":
		if at >= 0 {
			next = slices.Delete(next, at, at+1)
		}
		next = slices.Insert(next, below(t, len(next)+1), name)
	case "remove":
		if at >= 0 {
			next = slices.Delete(next, at, at+1)
		}
	case "shuffle":
		next = rapid.Permutation(sources).Draw(t, "order")
	case "strangers": // without records
		place := below(t, len(next)+1)
		for i := range 20 {
			next = slices.Insert(next, place, fmt.Sprint("stranger", len(order), i))
		}
	}
	return next
}

// Whatever orders and commits follow one another, the catalog is as if it had been merged
// in the last order from the start, and every change is complete.
func TestAnOrderThatChangesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(sources).Draw(t, "order")[:below(t, len(sources)+1)]
		b, now := catalog.NewBuilder(order), state{}
		for i, commit := range drawHistory(t) {
			if i == 0 {
				commit = append(commit, drawScopes(t)...)
			}
			b.Apply(uint64(i+1), commit)
			now.take(commit)
			for range below(t, 3) {
				order = drawOrder(t, order)
				old := b.Snapshot()
				change := b.Arrange(catalog.Order{Sources: order})
				mustAccountFor(t, old, b.Snapshot(), change)
				mustNameScopes(t, old, b.Snapshot(), change)
				scratch := build(order, now)
				mustEqual(t, "the order shows", seen(t, b.Snapshot()), seen(t, scratch))
				if got, want := precedence(b.Snapshot()), precedence(scratch); !reflect.DeepEqual(got, want) {
					t.Fatalf("scopes come in the order %v, want %v", got, want)
				}
			}
		}
	})
}

// drawScopes draws scopes of all sources, in two namespaces.
func drawScopes(t *rapid.T) []model.Event {
	var events []model.Event
	for _, source := range sources {
		for _, namespace := range []string{"x", "y"} {
			r := model.Record{Ref: ref(model.KindScope, source, "s"), Revision: 1, Spec: model.Scope{Hosts: model.ListOf("*/*"), WorkloadSelector: pick(t, labels("app", "a"), model.Labels{})}}
			if r.Namespace = namespace; rapid.Bool().Draw(t, "there") {
				events = append(events, model.Upsert{Record: r})
			}
		}
	}
	return events
}

// precedence lists the scopes of each namespace, in order.
func precedence(s *catalog.Snapshot) map[string][]model.Ref {
	list := map[string][]model.Ref{}
	for scope := range s.Scopes() {
		list[scope.Record.Namespace] = append(list[scope.Record.Namespace], scope.Record)
	}
	return list
}

// mustNameScopes demands that a change names each namespace with another precedence of scopes.
func mustNameScopes(t *rapid.T, old, now *catalog.Snapshot, change catalog.Change) {
	before, after := precedence(old), precedence(now)
	for namespace := range before {
		if _, named := change.Scopes[namespace]; !named && !slices.Equal(before[namespace], after[namespace]) {
			t.Fatalf("the scopes of %s changed and are not named", namespace)
		}
	}
}

// A source that is added to the order costs the same however much others have, and
// changes nothing. Adding and removing it again and again needs no other places for others.
func TestASourceThatIsAddedCostsNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	cost := func(services int) float64 {
		sizes := make([]int, services)
		for i := range sizes {
			sizes[i] = 1
		}
		b, before := grown(sizes...), (*catalog.Snapshot)(nil)
		before = b.Snapshot()
		orders := [][]string{append([]string{"new"}, order...), append(slices.Clone(order), "new"), order}
		n := 0
		allocated := testing.AllocsPerRun(100, func() {
			n++
			if change := b.Arrange(catalog.Order{Sources: orders[n%len(orders)]}); !change.Empty() {
				t.Fatalf("%d services changed", len(change.Services))
			}
		})
		if b.Snapshot() != before {
			t.Error("there is another snapshot")
		}
		return allocated
	}
	if few, many := cost(50), cost(50_000); many > few {
		t.Errorf("it takes %.0f allocations beside 50,000 services, and %.0f beside 50", many, few)
	}
}

// Of two sources that change places, the one is merged again whose place changes, and the
// services of others keep their pointers.
func TestOnlyWhatMovedIsMergedAgain(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"a", "b", "c", "d"})
	var events []model.Event
	for _, source := range []string{"a", "b", "c"} {
		for i := range 10 {
			name := fmt.Sprintf("%s%d", source, i)
			events = append(events, upserts(service(source, name, name), endpoint(source, name+"/1", "10.0.0.1", 1))...)
		}
	}
	b.Apply(1, append(events, upserts(service("b", "shop", "shop"), service("c", "shop", "shop"))...))
	change := b.Arrange(catalog.Order{Sources: []string{"d", "c", "a", "b"}})
	for key := range change.Services {
		if key != shop && key.Host[0] != 'c' {
			t.Errorf("%s changed", key)
		}
	}
	if s, _ := b.Snapshot().Service(shop); s.Sources()[0] != "c" {
		t.Errorf("the service is of %q", s.Sources())
	}
}

// However often a source is inserted before the same other one, the order is right.
func TestThereIsAlwaysRoom(t *testing.T) {
	t.Parallel()
	order := []string{"first", "a", "last"}
	b := catalog.NewBuilder(order)
	for i := range 1000 {
		name, at := fmt.Sprint("s", i), 1
		if i%3 == 0 {
			at = len(order)
		}
		order = slices.Insert(order, at, name)
		b.Arrange(catalog.Order{Sources: order})
		if i%100 < 10 {
			b.Apply(uint64(i+1), upserts(service(name, "shop", "shop")))
		}
	}
	want := slices.DeleteFunc(order, func(name string) bool {
		var i int
		_, err := fmt.Sscanf(name, "s%d", &i)
		return err != nil || i%100 >= 10
	})
	if s, _ := b.Snapshot().Service(shop); !slices.Equal(s.Sources(), want) {
		t.Errorf("the service is of %q, want %q", s.Sources(), want)
	}
}

// Another order needs no other watch: the store is not read again, and commits that follow it
// are merged in it.
func TestAnOrderChangesWhileAWatchGoesOn(t *testing.T) {
	t.Parallel()
	taken := make(chan []string)
	m := merger.New(catalog.Order{Sources: []string{"a", "b"}}, func(s *catalog.Snapshot, _ catalog.Change) {
		shop, _ := s.Service(shop)
		taken <- shop.Sources()
	})
	read := 0
	watch := func(yield func(model.Batch, error) bool) {
		read++
		_ = yield(batch(upserts(service("a", "shop", "shop"), service("b", "shop", "shop")), end(2)), nil) &&
			equal(<-taken, "a", "b") && func() bool {
			m.Arrange(catalog.Order{Sources: []string{"c", "b", "a"}})
			return equal(<-taken, "b", "a")
		}() &&
			yield(batch(upserts(service("c", "shop", "shop"))), nil) && equal(<-taken, "c", "b", "a") &&
			yield(model.Batch{}, errOrdered)
	}
	if err := m.Run(watch); !errors.Is(err, errOrdered) || read != 1 {
		t.Errorf("it ends with %v, after %d watches", err, read)
	}
}

var errOrdered = errors.New("all orders were as they should be")

func equal(got []string, want ...string) bool { return slices.Equal(got, want) }
