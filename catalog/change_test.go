package catalog_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// A reader that takes several changes as one ends where it would have ended
// taking each, and sees no difference that no change named.
func TestChangesCompose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		from, held, named := b.Snapshot(), catalog.Change{}, []string{}
		for i, commit := range drawHistory(t) {
			change := b.Apply(uint64(i+1), commit)
			named = append(named, names(change)...)
			before := deepCopy(change)
			held = held.Then(change)
			if diff := cmp.Diff(before, change, exported); diff != "" {
				t.Fatalf("the later change was altered (-was +is):\n%s", diff)
			}
			mustLead(t, from, b.Snapshot(), held)
			if extra := slices.DeleteFunc(names(held), func(n string) bool { return slices.Contains(named, n) }); len(extra) > 0 {
				t.Fatalf("nobody named %q", extra)
			}
			if rapid.Bool().Draw(t, "taken") { // the reader took what was held
				from, held, named = b.Snapshot(), catalog.Change{}, nil
			}
		}
	})
}

// mustLead checks that a change names everything that differs between two
// snapshots, as it is in them. It may name more: what changed and changed back.
func mustLead(t *rapid.T, from, to *catalog.Snapshot, c catalog.Change) {
	before, after := seen(t, from), seen(t, to)
	keys := maps.Clone(before.Services)
	maps.Copy(keys, after.Services)
	if !slices.Equal(before.Primed, after.Primed) && !c.Primed {
		t.Fatalf("primed is not set, from %v to %v", before.Primed, after.Primed)
	}
	mustName(t, before.Opaques, after.Opaques, c.Opaques, from.Opaque, to.Opaque)
	for key := range keys {
		was, _ := from.Service(key)
		is, _ := to.Service(key)
		s, named := c.Services[key]
		if !named && was != is {
			t.Fatalf("%s is not named", key)
		}
		if named && (s.Old != was || s.New != is) {
			t.Fatalf("%s is not as in the snapshots", key)
		}
		for _, number := range numbers {
			for id := range differing(number, before.Services[key].Ports[number].counting(), after.Services[key].Ports[number].counting()) {
				if _, ok := s.Endpoints[id]; !ok {
					t.Fatalf("%s: %s is not named", key, idText(id))
				}
			}
		}
	}
	for key, s := range c.Services {
		if s.Old == nil && s.New == nil {
			t.Fatalf("%s is named, was not there and is not there", key)
		}
	}
}

// mustName checks that every value that differs is named, as it is in the
// snapshots.
func mustName[K comparable, O, V any](
	t *rapid.T, before, after map[K]O, named map[K]catalog.Replaced[V], from, to func(K) (*V, bool),
) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for key := range keys {
		was, _ := from(key)
		is, _ := to(key)
		c, ok := named[key]
		if !ok && was != is || ok && (c.Old != was || c.New != is) {
			t.Fatalf("%v, from %p to %p, is named: %t, %+v", key, was, is, ok, c)
		}
	}
	for key, c := range named {
		if c.Old == nil && c.New == nil {
			t.Fatalf("%v is named, was not there and is not there", key)
		}
	}
}

// exported compares values by their pointers.
var exported = cmp.Options{
	cmp.Comparer(func(a, b *catalog.Service) bool { return a == b }),
	cmp.Comparer(func(a, b *catalog.Opaque) bool { return a == b }),
}

// deepCopy copies a change, with its maps.
func deepCopy(c catalog.Change) catalog.Change {
	c.Services = maps.Clone(c.Services)
	for key, s := range c.Services {
		s.Endpoints = maps.Clone(s.Endpoints)
		c.Services[key] = s
	}
	c.Opaques = maps.Clone(c.Opaques)
	return c
}

// Several readers are handed the same changes, and each takes them in its own time.
func TestReadersDoNotShareWhatTheyHold(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder(order)
	one := b.Apply(1, upserts(service("a", "shop", "shop"), endpoint("a", "shop/1", "10.0.0.1", 1)))
	two := b.Apply(2, upserts(service("a", "bar", "bar"), endpoint("a", "shop/2", "10.0.0.2", 1)))
	three := b.Apply(3, upserts(endpoint("a", "shop/3", "10.0.0.3", 1)))

	slow := catalog.Change{}.Then(one)
	fast := catalog.Change{}.Then(one)
	fast = fast.Then(two).Then(three)
	if got, want := names(slow), []string{"ns/shop", "ns/shop 80 10.0.0.1:80"}; !slices.Equal(got, want) {
		t.Errorf("one reader holds %q, want %q", got, want)
	}
	if got, want := names(two), []string{"ns/bar", "ns/shop", "ns/shop 80 10.0.0.2:80"}; !slices.Equal(got, want) {
		t.Errorf("a change became %q, want %q", got, want)
	}
	if len(names(fast)) != 5 {
		t.Errorf("the other holds %q", names(fast))
	}
}

func TestWhatCameAndWentIsNotNamed(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder(order)
	r := service("a", "shop", "shop")
	c := b.Apply(1, upserts(r)).Then(b.Apply(2, deletes(r)))
	if !c.Empty() {
		t.Errorf("%q is named", names(c))
	}
}

func TestChangesAreAsOldAsTheOldest(t *testing.T) {
	t.Parallel()
	at := func(second int64) catalog.Change {
		c := catalog.Change{Primed: true}
		if second > 0 {
			c.Observed, c.Committed = time.Unix(second, 0), time.Unix(second+1, 0)
		}
		return c
	}
	for _, test := range []struct{ first, then, want int64 }{{1, 2, 1}, {2, 1, 1}, {0, 1, 1}, {1, 0, 1}, {0, 0, 0}} {
		got, want := at(test.first).Then(at(test.then)), at(test.want)
		if !got.Observed.Equal(want.Observed) || !got.Committed.Equal(want.Committed) {
			t.Errorf("%d then %d is observed %s and committed %s", test.first, test.then, got.Observed, got.Committed)
		}
	}
	b := catalog.NewBuilder(order)
	if c := at(1).Then(b.Apply(1, upserts(service("a", "shop", "shop")))); !c.Primed || !slices.Equal(names(c), []string{"ns/shop"}) {
		t.Errorf("primed, then a service, is %t %q", c.Primed, names(c))
	}
}
