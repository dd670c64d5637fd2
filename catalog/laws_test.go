package catalog_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// seen observes a snapshot that must not contradict itself.
func seen(t *rapid.T, s *catalog.Snapshot) world {
	w, err := observe(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustEqual(t *rapid.T, what string, got, want world) {
	got, want = got.ranked(), want.ranked()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

// The catalog merges as the rules say that it does.
func TestMergeFollowsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		mustEqual(t, "the merge and the rules disagree", seen(t, build(order, s)).anyReason(), reference(s))
	})
}

// In whatever order and commits records come, the catalog is the same.
func TestMergeIsOrderFree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		events := s.events()
		if len(events) > 0 {
			events = rapid.Permutation(events).Draw(t, "shuffled")
		}
		b := catalog.NewBuilder(order)
		for len(events) > 0 {
			n := rapid.IntRange(1, len(events)).Draw(t, "commit")
			b.Apply(1, events[:n])
			events = events[n:]
		}
		mustEqual(t, "another order, another catalog", seen(t, b.Snapshot()), seen(t, build(order, s)))
	})
}

// What was once in the store and is no more leaves no trace.
func TestHistoryLeavesNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := catalog.NewBuilder(order), state{}
		for i, commit := range drawHistory(t) {
			b.Apply(uint64(i+1), commit)
			now.take(commit)
			mustEqual(t, "the history shows", seen(t, b.Snapshot()), seen(t, build(order, now)))
		}
	})
}

// A change names what differs, and nothing else.
func TestChangesAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			old := b.Snapshot()
			change := b.Apply(uint64(i+1), commit)
			mustBeExact(t, old, b.Snapshot(), change)
			for key, c := range change.Services {
				if c.New != nil && c.New.Revision != uint64(i+1) {
					t.Fatalf("%s changed in revision %d and says %d", key, i+1, c.New.Revision)
				}
			}
			if b.Snapshot().Revision != uint64(i+1) {
				t.Fatalf("the snapshot of revision %d says %d", i+1, b.Snapshot().Revision)
			}
		}
	})
}

// Whoever holds a snapshot may go on reading it.
func TestSnapshotsNeverChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		var snapshots []*catalog.Snapshot
		var worlds []world
		for i, commit := range drawHistory(t) {
			b.Apply(uint64(i+1), commit)
			snapshots, worlds = append(snapshots, b.Snapshot()), append(worlds, seen(t, b.Snapshot()))
		}
		for i, s := range snapshots {
			mustEqual(t, "an old snapshot changed", seen(t, s), worlds[i])
		}
	})
}

// A record whose specification is not that of its kind, which no store takes, is
// none of the catalog's business.
func TestOtherSpecificationsChangeNothing(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder(order)
	for kind, spec := range map[model.Kind]model.Spec{
		model.KindService: model.Opaque{}, model.KindScope: model.Opaque{}, "Novelty": model.Service{},
	} {
		r := model.Record{Ref: ref(kind, "a", "n"), Revision: 1, Spec: spec}
		for _, events := range [][]model.Event{upserts(r), deletes(r), {model.EndOfSnapshot{Revision: 9}}} {
			if change := b.Apply(1, events); !change.Empty() {
				t.Errorf("%s changes %v", kind, names(change))
			}
		}
	}
}
