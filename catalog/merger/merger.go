// Package merger runs the builder of the catalog on the watch of a store.
package merger

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Merger keeps a catalog of the records of a store's watch, and publishes each new snapshot
// with its change. It outlives a watch. When it runs with another watch, readers get the
// difference between the last snapshot and the first of the new watch. One goroutine runs
// [Merger.Run].
type Merger struct {
	publish   func(*catalog.Snapshot, catalog.Change)
	published *catalog.Snapshot  // the last
	builder   *catalog.Builder   // of the last run, or an empty one
	orders    chan catalog.Order // holds the newest order that is not in force yet
}

// New returns a merger that has published nothing. Order and publish are as in [Run].
func New(order catalog.Order, publish func(*catalog.Snapshot, catalog.Change)) *Merger {
	return &Merger{publish: publish, published: catalog.Empty(), builder: catalog.NewBuilderIn(order), orders: make(chan catalog.Order, 1)}
}

// Arrange merges records in another order from now on; see [catalog.Builder.Arrange]. It returns at
// once, and may be called by one goroutine at a time, whether the merger runs or not.
func (m *Merger) Arrange(order catalog.Order) {
	select {
	case <-m.orders: // the previous order was not taken, and is obsolete
	default:
	}
	m.orders <- order
}

// PanicError is a panic while records were read or merged. The builder is lost then; the
// last published snapshot is valid.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Run merges the batches of a watch until the watch ends, and returns its error. The first
// snapshot of the watch becomes one change from the last published snapshot. A panic ends
// the run with a [*PanicError]: run the merger again with another watch. Unless the watch
// has ended by itself, the caller ends it after the run.
func (m *Merger) Run(watch iter.Seq2[model.Batch, error]) error {
	done := make(chan struct{})
	defer close(done)
	received := receive(watch, done)
	m.builder = m.builder.Anew()
	select {
	case order := <-m.orders:
		m.builder.Arrange(order)
	default:
	}
	r := &run{Merger: m}
	for {
		// Cases: a batch of the watch, or its end; another order of sources.
		select {
		case next, goesOn := <-received:
			if !goesOn {
				return nil
			}
			if next.err != nil {
				return next.err
			}
			if err := r.take(next.Batch); err != nil {
				return err
			}
		case order := <-m.orders:
			if err := r.arrange(order); err != nil {
				return err
			}
		}
	}
}

// delivered is a batch that a watch yields, or the error that ends the watch.
type delivered struct {
	model.Batch
	err error
}

// receive passes on the batches of a watch until it ends, or done is closed.
func receive(watch iter.Seq2[model.Batch, error], done <-chan struct{}) <-chan delivered {
	next := make(chan delivered)
	send := func(batch model.Batch, err error) bool {
		// Cases: the merger takes the batch; the merger has ended.
		select {
		case next <- delivered{batch, err}:
			return true
		case <-done:
			return false
		}
	}
	go func() {
		defer close(next)
		if err := attempt(func() { watch(send) }); err != nil {
			send(model.Batch{}, err)
		}
	}()
	return next
}

// run is a builder that follows one watch.
type run struct {
	*Merger
	live bool // the builder has seen the end of its snapshot
}

func (r *run) take(batch model.Batch) error {
	return r.step(func() catalog.Change {
		change := r.apply(batch.Events, batch.Committed)
		if !r.live && endsSnapshot(batch.Events) {
			r.live, change = true, r.builder.Rejoin(r.published)
		}
		change.Observed, change.Committed = batch.Observed, batch.Committed
		return change
	})
}

func (r *run) apply(events []model.Event, committed time.Time) catalog.Change {
	revision := r.builder.Snapshot().Revision
	for _, event := range events {
		switch e := event.(type) {
		case model.Reset:
			r.builder, r.live, revision = r.builder.Anew(), false, 0
		case model.Upsert:
			revision = max(revision, e.Record.Revision)
		case model.Delete:
			revision = max(revision, e.Revision)
		case model.EndOfSnapshot:
			revision = e.Revision
		}
	}
	return r.builder.ApplyAt(revision, committed, events)
}

// arrange takes over another order, even if merging in it panics: the next run begins with
// it.
func (r *run) arrange(order catalog.Order) error {
	return r.step(func() catalog.Change { return r.builder.Arrange(order) })
}

// step merges a change and publishes the result. Before the snapshot of the watch is
// complete, nothing is published.
func (r *run) step(merge func() catalog.Change) error {
	var change catalog.Change
	if err := attempt(func() { change = merge() }); err != nil || !r.live {
		return err
	}
	before := r.published
	if r.published = r.builder.Snapshot(); r.published != before {
		r.publish(r.published, change)
	}
	return nil
}

// attempt converts a panic into an error.
func attempt(part func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	part()
	return nil
}

// Run keeps a catalog of the records of a store's watch, merged in the order given. It
// publishes each new snapshot with its change, one at a time. Publish must not block: it
// stores its arguments and returns.
//
// Run ends with the watch and returns its error, as [Merger.Run] does.
//
// A snapshot of the store, the first as well as one after a reset, becomes one change. No
// reader ever sees half of it.
func Run(watch iter.Seq2[model.Batch, error], order catalog.Order, publish func(*catalog.Snapshot, catalog.Change)) error {
	return New(order, publish).Run(watch)
}

func endsSnapshot(events []model.Event) bool {
	if len(events) == 0 {
		return false
	}
	_, ok := events[len(events)-1].(model.EndOfSnapshot)
	return ok
}
