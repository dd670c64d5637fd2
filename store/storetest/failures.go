package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// failures ends contexts before and during the use of the store: the one failure that
// every backend has.
func failures(t *testing.T, s Store) {
	t.Helper()
	fill(t, s, many)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batches := 0
	err := lastError(t, s.Watch(ctx, model.Filter{}), func() {
		batches++
		cancel()
	})
	if batches != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("a watch that was cancelled in its snapshot went on for %d batches, then error %v", batches-1, err)
	}
	err = lastError(t, s.Watch(ctx, model.Filter{Kind: "None"}), func() {
		t.Error("a watch in an ended context shows an empty snapshot")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a watch in an ended context ended with error %v", err)
	}
	before := listed(t, s, model.Filter{})
	revision, err := s.Commit(ctx, model.Commit{Writes: []model.Write{{Record: saying(web, 1)}}})
	if revision != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("a commit in an ended context: revision %d, error %v", revision, err)
	}
	mustEqual(t, "after a failed commit", listed(t, s, model.Filter{}), before)
}

// lastError reads a watch to its end and returns the one error there must be.
func lastError(t *testing.T, watch iter.Seq2[model.Batch, error], onBatch func()) (last error) {
	t.Helper()
	for b, err := range watch {
		if last != nil {
			t.Errorf("after its error %v the watch went on", last)
		}
		if last = err; err == nil {
			onBatch()
		} else if len(b.Events) > 0 {
			t.Errorf("%d events came with the error %v", len(b.Events), err)
		}
	}
	return last
}
