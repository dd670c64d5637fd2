package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

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
