package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// commitTries bounds how often one reading is compared and committed afresh.
const commitTries = 4

var errNotListed = errors.New("a complete listing of the registry must come first: this is a defect of the source, please report it")

// sink takes the readings of one run of a source. It belongs to the goroutine of that
// run.
type sink struct {
	*Supervisor
	live    time.Time    // when this run's first complete listing was stored
	orphans *time.Ticker // runs while the owner of some record is unknown, else nil
}

var _ Sink = (*sink)(nil)

// restore reads the stored records before the source is run. Marks of an older
// Isthmus on single held records are replaced by one record for all of them.
func (k *sink) restore(ctx context.Context) error {
	done, err := k.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := k.confine(ctx); err != nil {
		return err
	}
	for range commitTries {
		writes := k.reindex()
		if len(writes) > 0 {
			writes = append(writes, k.holdWrites(nil)...)
			if _, err = k.store.Commit(ctx, model.Commit{Writes: writes}); err != nil {
				continue
			}
		}
		k.restored()
		return nil
	}
	return fmt.Errorf("store what is held: %w", err)
}

// Relist implements [Sink].
func (k *sink) Relist() <-chan time.Time {
	if k.orphans != nil { // its interval is shorter
		return k.orphans.C
	}
	return k.relist.C
}

// Replace implements [Sink].
func (k *sink) Replace(ctx context.Context, listing Listing) error {
	if listing.Places != nil && k.live.IsZero() {
		return errNotListed
	}
	return k.take(ctx, readListing(k.name, k.cfg.Only, k.cfg.LocalAddresses, listing), noted{listing.Ignored, listing.Notices})
}

// Change implements [Sink].
func (k *sink) Change(ctx context.Context, change Change) error {
	if k.live.IsZero() {
		return errNotListed
	}
	return k.take(ctx, readChange(k.name, k.cfg.Only, k.cfg.LocalAddresses, change), noted{})
}

// take stores a reading and then reports it to the status: a status never claims a
// record that is not stored.
func (k *sink) take(ctx context.Context, r *reading, n noted) error {
	done, err := k.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	k.bound(r)
	p, ask, err := k.commit(ctx, r)
	if err != nil {
		err = fmt.Errorf("store what was read: %w", err)
		if ctx.Err() == nil {
			k.lost(err.Error())
		}
		return err
	}
	now := time.Now()
	if r.whole && k.live.IsZero() {
		k.live = now
	}
	k.askForOwners(ask, r.whole)
	k.stored(r, p, n, now)
	return nil
}

// commit makes the store match the reading, apart from held records. Holds and
// judgements are part of the same commit. Without a difference there is no commit. A
// rejected commit may mean that another writer changed these records, so everything
// is read and compared again. The result ask says whether a listing could resolve
// omitted records.
func (k *sink) commit(ctx context.Context, read *reading) (p plan, ask bool, err error) {
	for range commitTries {
		if ctx.Err() != nil {
			// A reading taken while stopping may be cut short.
			return plan{}, false, context.Cause(ctx)
		}
		r, ask := k.withoutOrphans(read)
		p := k.compare(r)
		writes, baselines, dropped := k.prepare(r, p)
		if len(writes) > 0 {
			if _, err = k.store.Commit(ctx, model.Commit{Writes: writes, Observed: r.observed}); err != nil {
				k.undone(p, dropped)
				continue
			}
		}
		k.remember(r, p, time.Now())
		k.decided(p, baselines)
		return p, ask, nil
	}
	return plan{}, false, err
}

// prepare applies a plan in memory, and returns all writes of its commit: the plan's
// own, the mark of a complete listing, the holds, and the judgements of baselines.
func (k *sink) prepare(r *reading, p plan) (writes []model.Write, _ []*baselineState, dropped map[part]held) {
	now := time.Now()
	k.planned(p.writes)
	dropped = k.held(p, now)
	writes = p.writes
	writes = append(writes, k.holdWrites(p.writes)...)
	if !r.whole {
		return writes, k.baselines, dropped
	}
	rejected, _ := r.rejections(k.Status().Rejected)
	baselines := k.judged(overlay(k.store, p.writes), facts{listing: true, unread: unread(rejected), edited: k.cfg.Edited, now: now})
	marks := k.markWrites(baselines, true)
	k.planned(marks)
	return append(writes, marks...), baselines, dropped
}

// compare compares the reading with the stored records, and decides which ones to hold.
func (k *sink) compare(r *reading) plan {
	d := r.diff(k.scope(r), k.holds, stamp())
	if r.whole {
		if d.Held != k.holds.stock.stored {
			k.reindex() // another writer changed the source's records
			d = r.diff(k.scope(r), k.holds, stamp())
		}
		k.flag()
	}
	if !r.lists() {
		p := k.holds.decide(r, d, nobody, k.cfg.Hold, time.Now())
		p.explained = k.explained(d, p)
		return p
	}
	return k.judge(r, d, time.Now())
}

// judge decides about the records that a listing lacks.
func (k *sink) judge(r *reading, d difference, now time.Time) plan {
	k.begin(now)
	var t turnover
	var f fall
	var s suspicion
	if slices.ContainsFunc(d.Missing, func(rec model.Record) bool { return !k.holds.has(partOf(rec)) }) {
		t = k.turnover(r, d)
		f = k.fall(t)
		s = k.cfg.Hold.suspects(f)
	}
	cause := nobody
	switch {
	case s.whole:
		cause = func(model.Record) (model.Ref, bool) { return model.Ref{}, true }
	case s.is():
		cause = func(rec model.Record) (model.Ref, bool) { return s.cause(rec, k.services(rec)) }
	}
	p := k.holds.decide(r, d, cause, k.cfg.Hold, now)
	p.turnover = t
	maps.Copy(p.terms, s.terms(k.cfg.Hold))
	if s.is() {
		k.recall(r, &p, s, f, now)
	}
	p.falls, p.departures, p.explained = k.falls(t), k.departures(p.deleted, now), k.explained(d, p)
	return p
}

// nobody is the cause function of records that are not suspicious.
func nobody(model.Record) (model.Ref, bool) { return model.Ref{}, false }

// stamp returns the time as it is stored: without a time zone or a monotonic clock.
func stamp() time.Time { return time.Now().UTC().Round(0) }
