package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// chunk is the number of records in one batch of a snapshot.
const chunk = 1000

// errStopped says that the reader of a watch wants no more.
var errStopped = errors.New("the reader stopped")

// Watch yields what f selects: a snapshot, in batches of which the last ends
// with [model.EndOfSnapshot], then one batch for each later commit that changes
// something f selects, in the order of its writes. Batches are the reader's to
// keep.
//
// When the reader lags behind by more than [Config.History] events, a batch
// with a [model.Reset] alone comes next, and a new snapshot after it.
//
// The watch starts anew each time it is ranged over, and ends when the reader
// breaks off, or when ctx ends: then ctx.Err() is yielded once, as the last.
func (m *Memory) Watch(ctx context.Context, f model.Filter) iter.Seq2[model.Batch, error] {
	return func(yield func(model.Batch, error) bool) {
		err := m.watch(ctx, f, func(b model.Batch) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(b, nil) {
				return errStopped
			}
			return nil
		})
		if !errors.Is(err, errStopped) {
			yield(model.Batch{}, err)
		}
	}
}

// watch runs a watch until send or ctx ends it, and returns why.
func (m *Memory) watch(ctx context.Context, f model.Filter, send func(model.Batch) error) error {
	lost := fmt.Sprintf("the reader lagged more than %d events behind", m.history.bound)
	for {
		position, err := m.sendSnapshot(f, send)
		if err != nil {
			return err
		}
		if err := follow(ctx, position, f, send); err != nil {
			return err
		}
		if err := send(model.Batch{Events: []model.Event{model.Reset{Reason: lost}}}); err != nil {
			return err
		}
	}
}

// sendSnapshot sends the records of the current state and returns the position
// to follow from. It keeps the state no longer than it takes.
func (m *Memory) sendSnapshot(f model.Filter, send func(model.Batch) error) (*position, error) {
	now := m.state.Load()
	var events []model.Event
	for record := range scan(now.records, f) {
		if len(events) == chunk {
			if err := send(model.Batch{Events: events}); err != nil {
				return nil, err
			}
			events = nil
		}
		events = append(events, model.Upsert{Record: *record})
	}
	events = append(events, model.EndOfSnapshot{Revision: now.revision, Epoch: m.epoch})
	return now.position, send(model.Batch{Events: events})
}

// follow sends every commit after position. It returns nil when the history
// has forgotten the next one.
func follow(ctx context.Context, at *position, f model.Filter, send func(model.Batch) error) error {
	for {
		next, err := at.wait(ctx)
		if err != nil {
			return err
		}
		if next.forgotten() {
			return nil
		}
		if b := next.batch(f); len(b.Events) > 0 {
			if err := send(b); err != nil {
				return err
			}
		}
		at = next.after
	}
}
