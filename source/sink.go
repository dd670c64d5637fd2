package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// commitTries bounds how often one reading is compared and committed afresh.
const commitTries = 4

var errNotListed = errors.New("a complete listing of the registry must come first: this is a defect of the source, please report it")

// sink takes the readings of one run of a source. It and its index belong to
// the goroutine of that run.
type sink struct {
	*Supervisor
	index  *index
	listed time.Time // when this run's first complete listing was stored
}

var _ Sink = (*sink)(nil)

// Replace implements [Sink].
func (k *sink) Replace(ctx context.Context, listing Listing) error {
	if listing.Places != nil && k.listed.IsZero() {
		return errNotListed
	}
	return k.take(ctx, readListing(k.name, k.cfg.Origin, listing), listing.Ignored)
}

// Change implements [Sink].
func (k *sink) Change(ctx context.Context, change Change) error {
	if k.listed.IsZero() {
		return errNotListed
	}
	return k.take(ctx, readChange(k.name, k.cfg.Origin, change), nil)
}

// take stores a reading and tells the status about it, in this order: a status
// never claims what is not stored.
func (k *sink) take(ctx context.Context, r *reading, ignored map[string]int) error {
	if err := k.commit(ctx, r); err != nil {
		err = fmt.Errorf("store what was read: %w", err)
		if ctx.Err() == nil {
			k.fail(err.Error())
		}
		return err
	}
	now := time.Now()
	if r.whole && k.listed.IsZero() {
		k.listed = now
	}
	k.stored(r, k.index, ignored, now)
	return nil
}

// commit makes the store say what the reading says, in one commit, or in none
// when it does already. A refused commit may mean that somebody else changed
// these records, so everything is read and compared again.
func (k *sink) commit(ctx context.Context, r *reading) error {
	var err error
	for range commitTries {
		if ctx.Err() != nil {
			// What is read while stopping may be cut short.
			return context.Cause(ctx)
		}
		d := r.diff(k.scope(r), stamp())
		writes := d.writes()
		if len(writes) == 0 {
			return nil
		}
		if _, err = k.store.Commit(ctx, model.Commit{Writes: writes, Observed: r.observed}); err == nil {
			k.index.commit(writes)
			return nil
		}
		k.index = k.reindex()
	}
	return err
}

// stamp is the time as it is stored: without a time zone or a process's own clock.
func stamp() time.Time { return time.Now().UTC().Round(0) }
