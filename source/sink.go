package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	listed  time.Time    // when this run's first complete listing was stored
	orphans *time.Ticker // runs while the owner of some record is unknown, else nil
}

var _ Sink = (*sink)(nil)

// restore reads what is stored before the source is run.
func (k *sink) restore(ctx context.Context) error {
	done, err := k.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	k.reindex()
	k.restored()
	return nil
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
	done, err := k.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if r.whole {
		r.records[r.at[markRef(k.name)]].Spec = k.mark()
	}
	v, ask, err := k.commit(ctx, r)
	if err != nil {
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
	k.ask(r.whole)
	k.askForOwners(ask, r.whole)
	k.stored(r, v, ignored, now)
	if r.whole {
		k.Supervisor.listed = true
		return k.judge(ctx, true)
	}
	return nil
}

// commit makes the store say what the reading says, but for what is held, in
// one commit, or in none when it does already. A refused commit may mean that
// somebody else changed these records, so everything is read and compared again.
// It reports whether a listing could tell more about what was left out.
func (k *sink) commit(ctx context.Context, read *reading) (v verdict, ask bool, err error) {
	for range commitTries {
		if ctx.Err() != nil {
			// What is read while stopping may be cut short.
			return verdict{}, false, context.Cause(ctx)
		}
		r, ask := k.withoutOrphans(read)
		v := k.compare(r)
		if len(v.writes) > 0 {
			if _, err = k.store.Commit(ctx, model.Commit{Writes: v.writes, Observed: r.observed}); err != nil {
				k.reindex()
				continue
			}
			k.index.commit(v.writes)
		}
		k.holds.apply(v)
		return v, ask, nil
	}
	return verdict{}, false, err
}

// compare compares the reading with what is stored, and decides what to hold.
func (k *sink) compare(r *reading) verdict {
	d := r.diff(k.scope(r), stamp())
	if r.whole {
		k.holds.restore(d.Marked)
	}
	var fates []fate
	if len(d.Missing) > 0 {
		fates = k.cfg.Hold.judge(k.census(r, d), d.Missing)
	}
	return k.holds.rule(r, d, fates, k.cfg.Hold, time.Now())
}

// census gathers what the decision needs to know of the source.
func (k *sink) census(r *reading, d difference) census {
	_, suspected := k.kept()
	c := census{
		total:  k.index.endpoints() + suspected,
		silent: suspected,
		survives: func(yield func(model.Record) bool) {
			for i, survived := range d.Survived {
				if survived && !yield(r.records[i]) {
					return
				}
			}
		},
		stored: func(kind model.Kind) iter.Seq[model.Record] {
			return k.store.List(model.Filter{Kind: kind, Source: k.name})
		},
		cause: func(ref model.Ref) (model.Ref, bool) {
			m, held := k.holds.of[ref]
			if _, listed := r.at[ref]; !held || listed {
				return model.Ref{}, false
			}
			return m.hold.cause, true
		},
	}
	silent := k.silent(r, d)
	for ref := range silent {
		c.silent += endpointsIn(ref.Kind)
	}
	c.before = k.stock(silent)
	c.after = c.before.less(r, d)
	return c
}

// silent is what is held of which the reading says nothing: it speaks of what
// it lists, refuses, misses or deletes.
func (k *sink) silent(r *reading, d difference) map[model.Ref]bool {
	silent := make(map[model.Ref]bool, len(k.holds.of))
	for ref := range k.holds.of {
		if _, listed := r.at[ref]; !listed {
			silent[ref] = true
		}
	}
	for _, ref := range d.Returned {
		delete(silent, ref)
	}
	for _, rec := range d.Missing {
		delete(silent, rec.Ref)
	}
	for _, w := range d.Deletes {
		delete(silent, w.Record.Ref)
	}
	return silent
}

// stock counts what is stored of the source, without its mark and some records.
func (k *sink) stock(without map[model.Ref]bool) stock {
	s := stock{
		stored:    k.index.total - k.index.counts[model.KindSource],
		endpoints: k.index.endpoints(), services: k.index.services(),
	}
	for ref := range without {
		s.add(ref, -1)
	}
	return s
}

// less is what is left of the stock after a reading, if all that is missing goes.
func (s stock) less(r *reading, d difference) stock {
	for _, rec := range d.Missing {
		s.add(rec.Ref, -1)
	}
	for _, w := range d.Deletes {
		s.add(w.Record.Ref, -1)
	}
	old := s.stored
	for i, survived := range d.Survived {
		if !survived {
			s.add(r.records[i].Ref, +1)
		}
	}
	s.stored = old
	return s
}

func (s *stock) add(ref model.Ref, by int) {
	s.stored += by
	s.endpoints += by * endpointsIn(ref.Kind)
	if ref.Kind == model.KindService {
		s.services += by
	}
}

// stamp is the time as it is stored: without a time zone or a process's own clock.
func stamp() time.Time { return time.Now().UTC().Round(0) }
