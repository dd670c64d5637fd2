package source_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// A change that was compared with what a store had before it was restored is not
// stored: what it builds on may not be there.
func TestNothingIsStoredUponWhatARestoredStoreHad(t *testing.T) {
	supervise(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		copied := slices.Collect(b.store.List(model.Filter{Kind: model.KindSource}))
		revision := b.store.memory.Revision()
		b.list(service("a", "f", "1"), service("b", "f", "1"))
		b.store.before = func(model.Commit) {
			b.store.before = nil
			if err := b.store.memory.Restore(revision, slices.Values(copied)); err != nil {
				t.Error(err)
			}
		}
		if err := b.do(func(ctx context.Context, sink source.Sink) error {
			return sink.Change(ctx, upserted(delta("b", "2", 0)))
		}); err == nil {
			t.Error("the source does not learn that its change is not stored")
		}
		b.holds()
		b.inState(source.StateStale)
		mentions(t, b.Status().Reason, "the store was restored", "listed anew")
		b.list(service("a", "f", "1"), service("b", "f", "1", "2"))
		b.holds("Endpoint ns/a/1", "Endpoint ns/b/1", "Endpoint ns/b/2", "Service ns/a in f", "Service ns/b in f")
		b.inState(source.StateLive)
		if runs := b.registry.began(); len(runs) != 2 || !runs[1].Equal(time.Now()) {
			t.Errorf("runs began at %v, want a second one at once", runs)
		}
	})
}

// Who does not see a new epoch of the store must not go on as if there were none.
func TestSourceRunsAnewWhenTheStoreCannotBeWatched(t *testing.T) {
	supervise(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		b.store.cut()
		synctest.Wait()
		b.inState(source.StateStale)
		mentions(t, b.Status().Reason, "watch the store")
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
		time.Sleep(time.Minute)
		b.list(service("a", "f", "1"))
		b.inState(source.StateLive)
		if runs := b.registry.began(); len(runs) != 2 {
			t.Errorf("runs began at %v, want a second one", runs)
		}
	})
}
