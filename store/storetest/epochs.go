package storetest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// restoredStore restores an earlier state of a store. Its readers are in a snapshot,
// at the end, and behind.
func restoredStore(t *testing.T, s Store) {
	t.Helper()
	l := fill(t, s, many)
	saved := snapshot(t, s, model.Filter{})
	live, behind, early := watch(t, s, model.Filter{}).prime(), watch(t, s, model.Filter{}).prime(), watch(t, s, model.Filter{})
	early.read()
	alter(t, s, l, 10)
	live.readTo(put(t, s, saying(web, 1)))
	lost := get(t, s, web).UID

	if err := s.Restore(saved.revision, maps.Values(saved.held)); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "list", listed(t, s, model.Filter{}), saved.held)
	next := put(t, s, saying(web, 2))
	if next <= saved.revision {
		t.Errorf("the first commit has revision %d, and the store was restored to %d", next, saved.revision)
	}
	for name, r := range map[string]*reader{"up to date": live, "behind": behind, "in its snapshot": early} {
		before := r.epoch
		for r.resets == 0 {
			r.read()
		}
		r.prime()
		r.readTo(next)
		if r.epoch == saved.epoch || r.epoch == before || r.resets != 1 {
			t.Errorf("a reader %s: epoch %d after %d, %d resets; want another, and 1", name, r.epoch, saved.epoch, r.resets)
		}
		if r.held[web].UID == lost {
			t.Errorf("a reader %s holds a record that was lost", name)
		}
		mustEqual(t, "what a reader "+name+" holds", r.held, listed(t, s, model.Filter{}))
	}
	returned, stop := resume(t, t, s, model.Filter{}, saved)
	defer stop()
	if b := returned.read(); len(b.Events) != 1 || b.Events[0].(model.Reset).Reason == "" {
		t.Errorf("a reader of the epoch before is given %+v, want a reset", b)
	}
}

// rejectedRestore offers records that cannot have been saved.
func rejectedRestore(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 1))
	r := watch(t, s, model.Filter{}).prime()
	want, good := listed(t, s, model.Filter{}), get(t, s, web)
	bad := func(change func(*model.Record)) []model.Record {
		other := good
		other.Name = "other"
		change(&other)
		return []model.Record{good, other}
	}
	for what, saved := range map[string][]model.Record{
		"a record twice": {good, good},
		"no uid":         bad(func(r *model.Record) { r.UID = model.UID{} }),
		"no generation":  bad(func(r *model.Record) { r.Generation = 0 }),
		"no revision":    bad(func(r *model.Record) { r.Revision = 0 }),
		"of the future":  bad(func(r *model.Record) { r.Revision = 8 }),
		"no name":        bad(func(r *model.Record) { r.Name = "" }),
		"says nothing":   bad(func(r *model.Record) { r.Spec = nil }),
	} {
		var invalid *store.InvalidError
		if err := s.Restore(7, slices.Values(saved)); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want an error that says which record is invalid", what, err)
		}
	}
	mustEqual(t, "after rejected restores", listed(t, s, model.Filter{}), want)
	if r.readTo(put(t, s, saying(web, 2))); r.resets > 0 {
		t.Error("a rejected restore reset a watch")
	}
}

// notOlder opens watches that ask for moments in the future.
func notOlder(t *testing.T, s Store) {
	t.Helper()
	now := snapshot(t, s, model.Filter{}).at()
	open := func(ctx context.Context, at model.At) iter.Seq2[model.Batch, error] {
		return s.WatchFrom(ctx, model.Filter{}, model.Start{NotOlderThan: at})
	}
	var unreachable *store.EpochError
	shown := func() { t.Error("a watch shows what is older than it was asked for") }
	if err := lastError(t, open(t.Context(), model.At{Epoch: now.Epoch + 1}), shown); !errors.As(err, &unreachable) {
		t.Errorf("a moment of another epoch: error %v", err)
	}
	later := model.At{Epoch: now.Epoch, Revision: now.Revision + 3}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lastError(t, open(gone, later), shown); !errors.Is(err, context.Canceled) {
		t.Errorf("a moment that does not come: error %v", err)
	}
	for i, epoch := range []uint64{now.Epoch, 0} {
		later := model.At{Epoch: epoch, Revision: snapshot(t, s, model.Filter{}).revision + 3}
		first := make(chan model.At, 1)
		go func() { first <- firstEnd(open(t.Context(), later)) }()
		for n, at := 0, uint64(0); at < later.Revision; n++ {
			if len(first) > 0 {
				t.Errorf("a watch not older than %d begins too early", later.Revision)
			}
			at = put(t, s, saying(web, 3*i+n))
		}
		if got := <-first; got.Revision < later.Revision || got.Epoch != now.Epoch {
			t.Errorf("a watch not older than %d shows %+v", later.Revision, got)
		}
	}
}

// firstEnd reads a watch to the end of its snapshot.
func firstEnd(watch iter.Seq2[model.Batch, error]) (at model.At) {
	for b, err := range watch {
		if err != nil {
			break
		}
		if end, ok := b.Events[len(b.Events)-1].(model.EndOfSnapshot); ok {
			return model.At{Epoch: end.Epoch, Revision: end.Revision}
		}
	}
	return at
}
