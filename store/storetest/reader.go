package storetest

import (
	"context"
	"iter"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// failer is the part of a test that the helpers use: [testing.T] and rapid's T
// implement it.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// reader reads one watch step by step. Between the steps it is a watcher that lags.
type reader struct {
	t    failer
	next func() (model.Batch, error, bool)
	*view
}

// watch opens a watch that ends with the test.
func watch(t *testing.T, s Readable, f model.Filter) *reader {
	t.Helper()
	r, stop := watchUntil(t, t, s, f)
	t.Cleanup(stop)
	return r
}

// watchUntil opens a watch that ends with stop. Failures are reported to on.
func watchUntil(t *testing.T, on failer, s Readable, f model.Filter) (r *reader, stop func()) {
	t.Helper()
	return pull(t, on, newView(), func(ctx context.Context) iter.Seq2[model.Batch, error] { return s.Watch(ctx, f) })
}

// resume opens a watch from the moment of a view and continues with the view.
func resume(t *testing.T, on failer, s Readable, f model.Filter, v *view) (r *reader, stop func()) {
	t.Helper()
	return pull(t, on, v, func(ctx context.Context) iter.Seq2[model.Batch, error] {
		return s.WatchFrom(ctx, f, model.Start{Held: v.at()})
	})
}

func pull(t *testing.T, on failer, v *view, open func(context.Context) iter.Seq2[model.Batch, error]) (r *reader, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	take, end := iter.Pull2(open(ctx))
	next := func() (model.Batch, error, bool) { // a watch lives as long as its test, and a batch comes in time
		late := time.AfterFunc(until.Patience, cancel)
		defer late.Stop()
		return take()
	}
	return &reader{on, next, v}, func() {
		end()
		cancel()
	}
}

// read takes the next batch and folds it in.
func (r *reader) read() model.Batch {
	r.t.Helper()
	b, err, ok := r.next()
	if err != nil || !ok {
		r.t.Fatalf("the watch ended: error %v, holding %d records of revision %d", err, len(r.held), r.revision)
	}
	if err := r.apply(b); err != nil {
		r.t.Fatalf("%v\nin batch %+v", err, b)
	}
	return b
}

// prime reads up to the end of the snapshot.
func (r *reader) prime() *reader {
	r.t.Helper()
	for !r.primed {
		r.read()
	}
	return r
}

// readTo reads until the reader is at the revision.
func (r *reader) readTo(revision uint64) {
	r.t.Helper()
	for !r.primed || r.revision < revision {
		r.read()
	}
}

// snapshot returns the first snapshot of a new watch.
func snapshot(t *testing.T, s Readable, f model.Filter) *view {
	t.Helper()
	return watch(t, s, f).prime().view
}

// listed collects a list and checks its order.
func listed(t failer, s Readable, f model.Filter) set {
	t.Helper()
	out := set{}
	var last *model.Ref
	for r := range s.List(f) {
		if last != nil && last.Compare(r.Ref) >= 0 {
			t.Fatalf("the list has %s after %s", r.Ref, last)
		}
		last, out[r.Ref] = &r.Ref, r
	}
	return out
}

// mustEqual compares two sets of records, with their uids, revisions and generations.
func mustEqual(t failer, what string, got, want set) {
	t.Helper()
	if !maps.EqualFunc(got, want, same) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}
