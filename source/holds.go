package source

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// holds is everything of a source that is held, and how far each drop is
// confirmed. Which records are held can be read off the store, too; how often
// their absence was confirmed is known here alone, and begins anew with the
// process.
//
// The records that are held for one cause are confirmed together. A listing
// that can speak of all of them and lacks exactly these, no fewer and no more,
// is one more equal listing. If it lacks others, some that were held being
// listed again, or further ones being missing for the same cause, then the
// drop was not what it seemed, or is not over: it counts as the first of its
// kind. What is listed again is not held any more. A listing that cannot speak
// of all of them, because it is of other places or some could not be read,
// counts for nothing and against nothing, and so does the end of a run.
type holds struct {
	of map[model.Ref]member
	by map[model.Ref]*hold // by cause
}

// member is a held record: what it is held for, and the object it is part of.
type member struct {
	hold   *hold
	object model.Ref
}

// hold is what is held for one cause.
type hold struct {
	cause     model.Ref
	records   int
	endpoints int
	objects   map[model.Ref]int // records of each
	had       int               // endpoints of what was judged: the service, or the source
	back      int               // records that were held for it and are listed again
	lie       bool              // most of it is back, and the rest is no drop by itself
	listings  int               // equal ones so far
	first     time.Time         // when the first of them was stored
}

func newHolds() *holds {
	return &holds{of: map[model.Ref]member{}, by: map[model.Ref]*hold{}}
}

func (h *holds) empty() bool { return len(h.of) == 0 }

func (h *holds) endpoints() (n int) {
	for _, one := range h.by {
		n += one.endpoints
	}
	return n
}

// add has a record held for a cause, whatever it was held for.
func (h *holds) add(rec model.Record, cause model.Ref) {
	if m, ok := h.of[rec.Ref]; ok && m.hold.cause == cause {
		return
	}
	h.drop(rec.Ref)
	one := h.by[cause]
	if one == nil {
		one = &hold{cause: cause, objects: map[model.Ref]int{}}
		h.by[cause] = one
	}
	h.of[rec.Ref] = member{one, head(rec)}
	one.records++
	one.endpoints += endpointsIn(rec.Kind)
	one.objects[head(rec)]++
	one.had = max(one.had, one.endpoints)
}

// drop has a record not held any more.
func (h *holds) drop(ref model.Ref) {
	m, ok := h.of[ref]
	if !ok {
		return
	}
	delete(h.of, ref)
	m.hold.records--
	m.hold.endpoints -= endpointsIn(ref.Kind)
	if m.hold.objects[m.object]--; m.hold.objects[m.object] == 0 {
		delete(m.hold.objects, m.object)
	}
	if m.hold.records == 0 {
		delete(h.by, m.hold.cause)
	}
}

// restore takes over what the store says is held. What is news here counts as
// held for the source as a whole, and is not confirmed by any listing yet.
func (h *holds) restore(marked []model.Record) {
	stored := make(map[model.Ref]bool, len(marked))
	for _, rec := range marked {
		stored[rec.Ref] = true
		if _, ok := h.of[rec.Ref]; !ok {
			h.add(rec, model.Ref{})
			h.by[model.Ref{}].listings = 0
		}
	}
	for ref := range h.of {
		if !stored[ref] {
			h.drop(ref)
		}
	}
}

// tally is what one reading says about what is held for one cause.
type tally struct {
	again  int // missing as before
	fresh  int // missing, and not held for this cause before
	back   int // listed again
	left   int // deleted, or held for another cause now
	silent int // of which it says nothing

	endpoints int  // among the fresh
	remaining int  // endpoints among those missing as before
	drop      bool // what is missing is a suspicious drop by itself
}

// lie reports whether the drop has proved to be one: nothing more is missing,
// most of what was held is back, so many records in all, and the rest is no
// suspicious drop by itself and is few: fewer endpoints than are ever looked at,
// or a tenth of all. A registry that comes back by halves has not proved it yet.
func (t tally) lie(back int, cfg Hold) bool {
	few := t.remaining < cfg.Min && back > t.again || 9*t.again <= back
	return few && t.fresh == 0 && !t.drop && t.again > 0
}

// next returns how often the drop is confirmed after a reading, and since when.
func (t tally) next(listings int, first, now time.Time, listing bool) (int, time.Time) {
	equal := t.fresh == 0 && t.back == 0 && listings > 0
	switch {
	case equal && (!listing || t.silent > 0):
		return listings, first
	case equal:
		return listings + 1, first
	case listing && t.silent == 0:
		return 1, now
	default:
		return 0, time.Time{}
	}
}
