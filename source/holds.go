package source

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// holds is everything of a source that is held, and how far each drop is
// confirmed. Which records are held, and why, is in the store, too; how often
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
	objects map[model.Ref]map[model.Ref]*hold // of each object, the records that are held
	by      map[model.Ref]*hold               // by cause
	stock   stock                             // all that is held

	changed map[model.Ref]bool // causes of which the store does not know all
	sizes   map[model.Ref]int  // stored records of some objects, held or not
}

// part is a record, and the object it is part of.
type part struct{ ref, object model.Ref }

func partOf(rec model.Record) part { return part{rec.Ref, head(rec)} }

// hold is what is held for one cause.
type hold struct {
	cause   model.Ref
	reason  string
	since   time.Time
	had     int // endpoints of what was judged: the service, or the source
	stock   stock
	objects map[model.Ref]int // records of each
	count

	parts      uint32 // records that say so in the store
	everything bool   // one does, because nothing else is stored
}

// count is how far a drop is confirmed.
type count struct {
	listings int       // equal ones so far
	first    time.Time // when the first of them was stored
	back     int       // records that were held for it and are listed again
	lie      bool      // most of it is back, and the rest is no drop by itself
}

func newHolds() *holds {
	return &holds{
		objects: map[model.Ref]map[model.Ref]*hold{}, by: map[model.Ref]*hold{},
		changed: map[model.Ref]bool{}, sizes: map[model.Ref]int{},
	}
}

func (h *holds) empty() bool { return len(h.by) == 0 }

// of returns what a record is held for; nil if it is not held.
func (h *holds) of(p part) *hold { return h.objects[p.object][p.ref] }

// add has a record held for a cause, whatever it was held for.
func (h *holds) add(p part, cause model.Ref, now time.Time) {
	if one := h.of(p); one != nil && one.cause == cause {
		return
	}
	h.drop(p)
	one := h.by[cause]
	if one == nil {
		one = &hold{cause: cause, since: now.UTC().Round(0), objects: map[model.Ref]int{}}
		h.by[cause] = one
	}
	if h.objects[p.object] == nil {
		h.objects[p.object] = map[model.Ref]*hold{}
	}
	h.objects[p.object][p.ref] = one
	h.stock.add(p.ref, +1)
	one.stock.add(p.ref, +1)
	one.objects[p.object]++
	one.had = max(one.had, one.stock.endpoints)
	h.changed[cause] = true
}

// drop has a record not held any more.
func (h *holds) drop(p part) {
	one := h.of(p)
	if one == nil {
		return
	}
	h.changed[one.cause] = true
	if delete(h.objects[p.object], p.ref); len(h.objects[p.object]) == 0 {
		delete(h.objects, p.object)
		delete(h.sizes, p.object)
	}
	h.stock.add(p.ref, -1)
	one.stock.add(p.ref, -1)
	if one.objects[p.object]--; one.objects[p.object] == 0 {
		delete(one.objects, p.object)
	}
	if one.stock.stored == 0 {
		delete(h.by, one.cause)
	}
}

// counts returns how far drops are confirmed: not at all, where nothing is held.
func (h *holds) counts(of map[model.Ref]count) map[model.Ref]count {
	counts := make(map[model.Ref]count, len(of))
	for cause := range of {
		counts[cause] = count{}
		if one := h.by[cause]; one != nil {
			counts[cause] = one.count
		}
	}
	return counts
}

// recount says how far drops are confirmed.
func (h *holds) recount(counts map[model.Ref]count) {
	for cause, c := range counts {
		if one := h.by[cause]; one != nil {
			one.count = c
		}
	}
}

// clone returns a copy that shares nothing that is ever changed.
func (h *holds) clone() *holds {
	next := newHolds()
	for cause, one := range h.by {
		c := *one
		c.objects = map[model.Ref]int{}
		c.stock = stock{}
		next.by[cause] = &c
	}
	for object, records := range h.objects {
		next.objects[object] = make(map[model.Ref]*hold, len(records))
		for ref, one := range records {
			own := next.by[one.cause]
			next.objects[object][ref] = own
			own.objects[object]++
			own.stock.add(ref, +1)
		}
	}
	next.stock = h.stock
	return next
}
