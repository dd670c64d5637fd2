package store

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Feed brings a [Replica] what was decided elsewhere. Only its holder can
// change the replica. It may be used by any number of goroutines, though the
// order of commits is for its holder to keep.
type Feed struct {
	mu      sync.Mutex // held while the replica goes from one state to the next
	replica *Replica
}

// Decided is one commit as whoever decided it made it.
type Decided struct {
	// At is the moment the commit led to. Revisions grow within an epoch; they
	// need not be dense.
	At model.At
	// Events are upserts and deletes, each record once. The record of an upsert
	// is as stored: with its uid, its generation, and the revision of this commit.
	// Of the record of a delete only the reference is read.
	Events []model.Event
	// Observed and Committed are as in [model.Batch]; Committed is now if it is zero.
	Observed, Committed time.Time
}

// OrderError says that a commit cannot follow what the replica is at: it is of
// another epoch, or its revision is not higher. Nothing of it was applied.
//
// A replica cannot tell a commit that is repeated from one that comes too late,
// so neither passes as applied. A feed that was cut off goes on after
// [Replica.At], and passes over what is not newer. One that cannot go on from
// there starts over with [Feed.Reset].
type OrderError struct{ Fed, Now model.At }

func (e *OrderError) Error() string {
	if e.Fed.Epoch != e.Now.Epoch {
		return fmt.Sprintf("revision %d of epoch %d: the replica is in epoch %d, at revision %d; feed it a whole state of the new epoch first",
			e.Fed.Revision, e.Fed.Epoch, e.Now.Epoch, e.Now.Revision)
	}
	return fmt.Sprintf("revision %d: the replica is at revision %d already; go on with what comes after that",
		e.Fed.Revision, e.Now.Revision)
}

// Apply makes a commit the replica's newest, whole or not at all. It fails with
// an [*OrderError] if the commit does not come after what was applied, and with
// an [*InvalidError] if no store could have made it: then commits are missing
// in between or the feed is broken, and only [Feed.Reset] leads on.
func (f *Feed) Apply(d Decided) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.replica.state.Load()
	if d.At.Epoch == 0 || d.At.Epoch != now.at.Epoch || d.At.Revision <= now.at.Revision {
		return &OrderError{Fed: d.At, Now: now.at}
	}
	changes, err := changesOf(now.records, d)
	if err != nil {
		return err
	}
	if d.Committed.IsZero() {
		d.Committed = time.Now()
	}
	f.advance(now, changes, d)
	return nil
}

// Reset replaces everything by a state as of a moment. Every open watch is
// reset and learns why; watches that wait for a first state begin. A feed that
// lost its place resets within its epoch, at a revision that is not lower; one
// whose past may be another than the replica's comes with a new epoch.
//
// It fails with an [*OrderError] for a moment that is none or lies before the
// replica's, and with an [*InvalidError] for a record that cannot be one of
// that moment. Nothing changes then.
func (f *Feed) Reset(at model.At, why string, all iter.Seq[model.Record]) error {
	stored, err := collect(at.Revision, all)
	if err != nil {
		return err
	}
	return f.replace(at, why, stored)
}

func (f *Feed) replace(at model.At, why string, all records) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.replica.At()
	if at.Epoch == 0 || at.Epoch == now.Epoch && at.Revision < now.Revision {
		return &OrderError{Fed: at, Now: now}
	}
	next := newState(at, all)
	f.replica.state.Store(next)
	f.replica.history.restart(next.position, why)
	return nil
}

// commit is [Feed.Apply] for changes that were planned upon the very state the
// replica is at, and so need no second look.
func (f *Feed) commit(now *state, changes []change, d Decided) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now, changes, d)
}

// advance makes the changes the next state. The state comes before the
// history, so that a watcher can read what it was notified of.
func (f *Feed) advance(now *state, changes []change, d Decided) {
	next := newState(d.At, apply(now.records, changes))
	f.replica.state.Store(next)
	f.replica.history.append(&step{
		revision:  d.At.Revision,
		observed:  d.Observed,
		committed: d.Committed,
		after:     next.position,
	}, changes)
}
