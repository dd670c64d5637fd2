package storetest

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// many is enough records for a snapshot of several batches.
const many = 2500

// fill stores n endpoints in few commits and returns these commits.
func fill(t *testing.T, s Store, n int) *ledger {
	t.Helper()
	l := &ledger{}
	for first := 0; first < n; first += 100 {
		var writes []model.Write
		for i := first; i < min(n, first+100); i++ {
			writes = append(writes, model.Write{Record: saying(nth(i), i)})
		}
		l.note(commit(t, s, writes...), writes)
	}
	return l
}

func nth(i int) model.Ref {
	return ref(model.KindEndpoint, "files", "default", fmt.Sprintf("web/%05d", i))
}

// alter deletes one record of [fill], changes another and adds a third.
func alter(t *testing.T, s Store, l *ledger, n int) {
	t.Helper()
	writes := []model.Write{
		removal(s, nth(n)),
		based(s, saying(nth(n+1), -n)),
		{Record: saying(ref(model.KindEndpoint, "files", "default", fmt.Sprintf("web/%05d+", n)), n)},
	}
	l.note(commit(t, s, writes...), writes)
}

func exactSnapshot(t *testing.T, s Store) {
	t.Helper()
	l := fill(t, s, many)
	for n := 0; n < many; n += 400 {
		alter(t, s, l, n)
	}
	v := snapshot(t, s, model.Filter{})
	moments := l.moments()
	last := moments[len(moments)-1]
	if v.revision != last.revision {
		t.Errorf("the snapshot is of revision %d, and the store is at %d", v.revision, last.revision)
	}
	mustMatch(t, "snapshot", v.held, last.records)
	mustEqual(t, "list", listed(t, s, model.Filter{}), v.held)
}

func snapshotDuringWrites(t *testing.T, s Store) {
	t.Helper()
	l := fill(t, s, many)
	r := watch(t, s, model.Filter{})
	for n := 0; !r.primed; n += 200 {
		r.read()
		alter(t, s, l, n)        // records already delivered
		alter(t, s, l, many-2-n) // records not delivered yet
	}
	moments := l.moments()
	then, _ := at(moments, r.revision)
	mustMatch(t, fmt.Sprintf("snapshot of revision %d", r.revision), r.held, then.records)
	last := moments[len(moments)-1]
	r.readTo(last.revision)
	mustMatch(t, "what follows the snapshot", r.held, last.records)
}

func endOfSnapshot(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, size := range []int{0, 1, 999, 1000, 1001, 2000} {
		t.Run(fmt.Sprintf("of %d records", size), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			fill(t, s, size)
			endsOnce(t, s, model.Filter{}, size)
		})
	}
	for name, f := range map[string]model.Filter{
		"of a kind there is none of": {Kind: model.KindService},
		"of a source there is not":   {Source: "consul"},
		"of a namespace":             {Namespace: "empty"},
		"of a prefix":                {Kind: model.KindEndpoint, Source: "files", Namespace: "default", Prefix: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			fill(t, s, 10)
			endsOnce(t, s, f, 0)
		})
	}
}

// endsOnce expects a snapshot of some size, and after it only a commit that the filter
// selects. The view rejects a second EndOfSnapshot.
func endsOnce(t *testing.T, s Store, f model.Filter, size int) {
	t.Helper()
	r := watch(t, s, f).prime()
	if len(r.held) != size {
		t.Fatalf("the snapshot has %d records, want %d", len(r.held), size)
	}
	hidden := ref("Other", "nobody", "nowhere", "-")
	if f != (model.Filter{}) {
		put(t, s, saying(hidden, 1))
	}
	shown := markerOf(f)
	revision := put(t, s, saying(shown, 1))
	r.read()
	if _, ok := r.held[shown]; !ok || r.revision != revision || r.snapshots != 1 {
		t.Errorf("after the snapshot: revision %d, %d snapshots, %s there: %t; want revision %d, 1, true",
			r.revision, r.snapshots, shown, ok, revision)
	}
}
