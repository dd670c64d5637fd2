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

// errStopped reports that the reader of a watch stopped.
var errStopped = errors.New("the reader stopped")

// Watch yields the records that f selects. First comes a snapshot, in batches; the
// last batch ends with [model.EndOfSnapshot]. Then comes one batch for each later
// commit that changes a record that f selects, in the order of its writes. The reader
// owns the batches.
//
// When the reader lags behind by more than [Config] allows, or the replica is reset, a
// batch with a [model.Reset] alone comes next, and a new snapshot after it.
//
// The watch starts anew each time it is ranged over. It ends when the reader breaks
// off, or when ctx ends: then ctx.Err() is yielded once, as the last.
func (r *Replica) Watch(ctx context.Context, f model.Filter) iter.Seq2[model.Batch, error] {
	return r.WatchFrom(ctx, f, model.Start{})
}

// WatchFrom is [Replica.Watch] for a reader that already holds records, or that must
// not be sent a state older than the moment it knows of.
//
// A reader at a moment that the history still contains is sent exactly the commits
// after it. Otherwise, as after a restart, the first batch is a [model.Reset] with the
// reason and a snapshot follows. WatchFrom waits for a moment in the future. A
// NotOlderThan of another epoch will never come: the watch then ends with an
// [*EpochError].
func (r *Replica) WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error] {
	return func(yield func(model.Batch, error) bool) {
		err := r.watch(ctx, f, from, func(b model.Batch) error {
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
func (r *Replica) watch(ctx context.Context, f model.Filter, from model.Start, send func(model.Batch) error) error {
	now, err := r.reach(ctx, from.NotOlderThan)
	if err != nil {
		return err
	}
	at, err := r.resume(ctx, from.Held, send)
	for err == nil {
		if at == nil {
			if err := sendSnapshot(now, f, send); err != nil {
				return err
			}
			at, now = now.position, nil // A watch that follows keeps no state.
		}
		var lost string
		if lost, err = follow(ctx, at, f, send); err == nil {
			err = reset(send, lost)
		}
		at, now = nil, r.state.Load()
	}
	return err
}

// resume returns the position of a reader that holds records. It returns nil if a
// snapshot has to come; a reader that held records was then sent a reset with the
// reason.
func (r *Replica) resume(ctx context.Context, held model.At, send func(model.Batch) error) (*position, error) {
	if held == (model.At{}) {
		return nil, nil
	}
	at, lost, err := r.history.seek(ctx, held)
	if err == nil && at == nil {
		err = reset(send, lost)
	}
	return at, err
}

func reset(send func(model.Batch) error, why string) error {
	return send(model.Batch{Events: []model.Event{model.Reset{Reason: why}}})
}

// sendSnapshot sends the records of a state.
func sendSnapshot(now *state, f model.Filter, send func(model.Batch) error) error {
	var events []model.Event
	for record := range scan(now.records, f) {
		if len(events) == chunk {
			if err := send(model.Batch{Events: events}); err != nil {
				return err
			}
			events = nil
		}
		events = append(events, model.Upsert{Record: *record})
	}
	events = append(events, model.EndOfSnapshot{Revision: now.at.Revision, Epoch: now.at.Epoch})
	return send(model.Batch{Events: events})
}

// follow sends every commit after a position. When the history has forgotten the next
// one, it returns the reason.
func follow(ctx context.Context, at *position, f model.Filter, send func(model.Batch) error) (lost string, err error) {
	for {
		next, err := at.wait(ctx)
		if err != nil {
			return "", err
		}
		if next.forgotten() {
			return next.lost, nil
		}
		if b := next.batch(f); len(b.Events) > 0 {
			if err := send(b); err != nil {
				return "", err
			}
		}
		at = next.after
	}
}

// EpochError reports that a reader asked for a moment of another epoch, which the
// store will never reach. The reader has to read anew, without that moment.
type EpochError struct{ Wanted, Now model.At }

func (e *EpochError) Error() string {
	return fmt.Sprintf("revision %d of epoch %d will never come: the store was started anew or restored since, and is at revision %d of epoch %d; "+
		"watch again without it", e.Wanted.Revision, e.Wanted.Epoch, e.Now.Revision, e.Now.Epoch)
}

// reach waits for a state that is not older than at, and returns it.
func (r *Replica) reach(ctx context.Context, at model.At) (*state, error) {
	for {
		now := r.state.Load()
		switch {
		case at.Epoch != 0 && at.Epoch != now.at.Epoch:
			return nil, &EpochError{at, now.at}
		case now.at.Revision >= at.Revision:
			return now, nil
		}
		if _, err := now.position.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// seek returns the position after a moment, from which its reader can continue. It
// returns nil and the reason if the history no longer leads on from there. It waits
// for a moment in the future: from an earlier position, the reader would be sent
// commits that it already has.
func (h *history) seek(ctx context.Context, held model.At) (found *position, lost string, err error) {
	at := h.oldest.Load()
	if at.at.Epoch != held.Epoch {
		return nil, "the store was started anew or restored since the reader left", nil
	}
	if at.at.Revision > held.Revision {
		return nil, h.gone(held.Revision), nil
	}
	for {
		if next := at.next.Load(); next == nil && at.at.Revision >= held.Revision {
			return at, "", nil
		}
		next, err := at.wait(ctx)
		switch {
		case err != nil:
			return nil, "", err
		case next.forgotten():
			return nil, next.lost, nil
		case next.revision > held.Revision:
			return at, "", nil
		}
		at = next.after
	}
}
