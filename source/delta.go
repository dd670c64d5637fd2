package source

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// readOwned adds the single records of a change. The cost depends on their number,
// and not on the number of their owners' other records.
func (r *reading) readOwned(c Change) {
	r.dropped = make(map[model.Ref]bool, len(c.OwnedDeletes))
	for _, rec := range c.OwnedUpserts {
		if r.dropLocal(rec) {
			continue
		}
		if reason := r.putOwned(rec); reason != "" {
			ref := rec.Ref
			ref.Source = ""
			r.rejection = append(r.rejection, Rejection{Ref: ref, Object: describe(ref), Reason: reason})
		}
	}
	for _, ref := range c.OwnedDeletes {
		r.dropped[r.own(ref)] = true
	}
}

// putOwned adds a single record, or returns its fault.
func (r *reading) putOwned(rec model.Record) (fault string) {
	rec.Ref = r.own(rec.Ref)
	owner := r.own(rec.Owner)
	switch {
	case !known(owner):
		return "its owner is missing, without which it cannot change by itself"
	case !belongs(rec.Ref, owner):
		return fmt.Sprintf("it belongs to %s and must be named %q in its namespace", describe(owner), owner.Name+"/…")
	}
	i, listed := r.at[rec.Ref]
	if listed && r.records[i].Owner != owner {
		return "another object of this kind, namespace and name comes before it: rename or remove one of them"
	}
	if !listed {
		if fault = r.put(rec, owner); fault == "" {
			r.deltas = append(r.deltas, rec.Ref)
		}
		return fault
	}
	rec, fault = r.complete(rec, owner)
	if fault == "" {
		r.records[i] = rec
	}
	return fault
}

// single yields the records that the change names one by one.
func (r *reading) single() iter.Seq[model.Ref] {
	return func(yield func(model.Ref) bool) {
		for _, ref := range r.deltas {
			if !yield(ref) {
				return
			}
		}
		for ref := range r.dropped {
			if _, listed := r.at[ref]; !listed && !yield(ref) {
				return
			}
		}
	}
}

// withoutOrphans returns a reading without orphans: single records with an owner that
// is neither stored nor part of the reading. A record stored under another owner is
// an orphan, too. The result ask says whether a listing can tell more about them.
func (k *sink) withoutOrphans(r *reading) (_ *reading, ask bool) {
	orphans := map[model.Ref]bool{}
	for _, ref := range r.deltas {
		owner := r.records[r.at[ref]].Owner
		have, stored := k.find(ref)
		switch {
		case !k.owns(r, owner):
			orphans[ref] = true
			ask = ask || !k.isRejected(owner)
		case stored && have.Owner != owner:
			orphans[ref], ask = true, true
		}
	}
	if len(orphans) == 0 {
		return r, false
	}
	rest := *r
	rest.records, rest.deltas = nil, nil
	rest.at = make(map[model.Ref]int, len(r.at))
	for _, rec := range r.records {
		if !orphans[rec.Ref] {
			rest.at[rec.Ref] = len(rest.records)
			rest.records = append(rest.records, rec)
		}
	}
	for _, ref := range r.deltas {
		if !orphans[ref] {
			rest.deltas = append(rest.deltas, ref)
		}
	}
	rest.dropped = maps.Clone(r.dropped)
	for ref := range orphans {
		delete(rest.dropped, ref)
	}
	return &rest, ask
}

// owns reports whether an object will be stored after a reading.
func (k *sink) owns(r *reading, object model.Ref) bool {
	if i, listed := r.at[object]; listed {
		return r.records[i].Owner == (model.Ref{})
	}
	_, stored := k.index.stands[object]
	_, stays := r.rejected[object]
	return stored && (stays || !r.deleted[object])
}

// isRejected reports whether the registry has a rejected version of an object. A
// listing would only repeat that.
func (k *sink) isRejected(object model.Ref) bool {
	object.Source = ""
	for _, f := range k.Status().Rejected {
		if f.Ref == object {
			return true
		}
	}
	return false
}

// askWait is the delay, and the interval, of requests for a listing that only a
// listing can answer: after a record with an unknown owner, and after a release.
const askWait = time.Second

// askForOwners requests listings while they may reveal an unknown owner, until one
// has come.
func (k *sink) askForOwners(ask, listed bool) {
	if k.orphans != nil && listed {
		k.orphans.Stop()
		k.orphans = nil
	}
	if ask && k.orphans == nil {
		k.orphans = time.NewTicker(askWait)
	}
}
