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

// sink takes the readings of one run of a source. It belongs to the goroutine
// of that run.
type sink struct {
	*Supervisor
	epoch   uint64       // that the store was in when this run began
	live    time.Time    // when this run's first complete listing was stored
	orphans *time.Ticker // runs while the owner of some record is unknown, else nil
}

var _ Sink = (*sink)(nil)

// restore reads what is stored before the source is run. What an older Isthmus
// said on each record that it held is said in a record for all of them from here on.
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
			if _, err = k.store.Commit(ctx, model.Commit{Writes: writes, Epoch: k.epoch}); err != nil {
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
	if k.orphans != nil { // it asks more often than what is held does
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

// take stores a reading and reports it to the status, in this order: a status
// never claims what is not stored.
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

// commit makes the store say what the reading says, but for what is held, and
// what is held and decided, in one commit, or in none when it does already. A
// rejected commit may mean that somebody else changed these records, so everything
// is read and compared again. It reports whether a listing could tell more about
// what was left out.
func (k *sink) commit(ctx context.Context, read *reading) (p plan, ask bool, err error) {
	for range commitTries {
		if ctx.Err() != nil {
			// What is read while stopping may be cut short.
			return plan{}, false, context.Cause(ctx)
		}
		r, ask := k.withoutOrphans(read)
		p := k.compare(r)
		writes, baselines, dropped := k.prepare(r, p)
		if len(writes) > 0 {
			if _, err = k.store.Commit(ctx, model.Commit{Writes: writes, Observed: r.observed, Epoch: k.epoch}); err != nil {
				k.undone(p, dropped)
				if k.outlived() {
					return plan{}, false, errNewEpoch
				}
				continue
			}
		}
		k.remember(r, p, time.Now())
		k.decided(p, baselines)
		return p, ask, nil
	}
	return plan{}, false, err
}

// prepare takes a plan for carried out, and returns what has to be written for
// that: the plan's own writes, what says that the source has been listed, what is
// held, and what is decided about baselines.
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

// compare compares the reading with what is stored, and decides what to hold.
func (k *sink) compare(r *reading) plan {
	d := r.diff(k.scope(r), k.holds, stamp())
	if r.whole {
		if d.Held != k.holds.stock.stored {
			k.reindex() // somebody else wrote to the source's records
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

// judge decides what becomes of the records that a listing lacks.
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

// nobody is the cause of records of which none is suspicious.
func nobody(model.Record) (model.Ref, bool) { return model.Ref{}, false }

// stamp is the time as it is stored: without a time zone or a process's own clock.
func stamp() time.Time { return time.Now().UTC().Round(0) }
