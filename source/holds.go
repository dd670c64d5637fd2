package source

import (
	"cmp"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// holds are the held records of a source. The store has them, too, with cause and
// begin. The number of listings that lacked each of them is only in memory, and
// begins anew with the process.
//
// Each record has its own clock. A listing that lacks the record advances it; a
// listing with the record ends the hold. A listing of other places, or with an
// unreadable place of the record, does neither.
type holds struct {
	objects map[model.Ref]map[model.Ref]held // of each object, the held records
	by      map[holdKey]*hold
	stock   stock // all held records

	changed map[holdKey]bool // holds that differ from the store
}

// holdKey names a hold: its cause, and its begin in nanoseconds.
type holdKey struct {
	cause model.Ref
	since int64
}

func (k holdKey) compare(o holdKey) int {
	return cmp.Or(k.cause.Compare(o.cause), cmp.Compare(k.since, o.since))
}

// part is a record, and the object it is part of.
type part struct{ ref, object model.Ref }

func partOf(rec model.Record) part { return part{rec.Ref, head(rec)} }

// hold has the records that one listing found missing for one cause.
type hold struct {
	terms
	cause   model.Ref
	since   time.Time
	stock   stock
	objects map[model.Ref]int // records of each
	clock                     // of the record that is confirmed first
	parts   uint32            // records of the store that name its records
}

// terms describe a hold for people.
type terms struct {
	reason string
	had    int // the mark of the causing service, or the loss of the source
}

// held is a held record.
type held struct {
	*hold
	clock
}

// clock counts the listings that lacked a record since the process began.
type clock struct {
	listings int
	first    time.Time // when the first of them came
}

// next returns the clock after one more listing.
func (c clock) next(now time.Time) clock {
	if c.listings == 0 {
		c.first = now
	}
	c.listings++
	return c
}

func newHolds() *holds {
	return &holds{objects: map[model.Ref]map[model.Ref]held{}, by: map[holdKey]*hold{}, changed: map[holdKey]bool{}}
}

func (h *holds) empty() bool { return len(h.by) == 0 }

func (one *hold) key() holdKey { return holdKey{one.cause, one.since.UnixNano()} }

// of returns the hold of a record; its hold is nil if it is not held.
func (h *holds) of(p part) held { return h.objects[p.object][p.ref] }

func (h *holds) has(p part) bool { return h.of(p).hold != nil }

// ownedBy counts the held records that an object owns.
func (h *holds) ownedBy(object model.Ref) int {
	n := len(h.objects[object])
	if h.has(part{object, object}) {
		n--
	}
	return n
}

// causes returns the causes of all holds.
func (h *holds) causes() map[model.Ref]bool {
	causes := make(map[model.Ref]bool, len(h.by))
	for key := range h.by {
		causes[key.cause] = true
	}
	return causes
}

// add holds a record that is not held yet.
func (h *holds) add(p part, cause model.Ref, since time.Time, why terms, at clock) {
	since = since.UTC().Round(0)
	key := holdKey{cause, since.UnixNano()}
	one := h.by[key]
	if one == nil {
		one = &hold{cause: cause, since: since, terms: why, clock: at, objects: map[model.Ref]int{}}
		h.by[key] = one
	}
	if h.objects[p.object] == nil {
		h.objects[p.object] = map[model.Ref]held{}
	}
	h.objects[p.object][p.ref] = held{one, at}
	h.stock.add(p.ref, +1)
	one.stock.add(p.ref, +1)
	one.objects[p.object]++
	h.changed[key] = true
}

// drop ends the hold of a record, and returns it.
func (h *holds) drop(p part) held {
	was := h.of(p)
	one := was.hold
	if one == nil {
		return was
	}
	key := one.key()
	h.changed[key] = true
	if delete(h.objects[p.object], p.ref); len(h.objects[p.object]) == 0 {
		delete(h.objects, p.object)
	}
	h.stock.add(p.ref, -1)
	one.stock.add(p.ref, -1)
	if one.objects[p.object]--; one.objects[p.object] == 0 {
		delete(one.objects, p.object)
	}
	if one.stock.stored == 0 {
		delete(h.by, key)
	}
	return was
}

// tick counts a listing that lacks held records.
func (h *holds) tick(lacked []part, now time.Time) {
	for _, p := range lacked {
		was := h.of(p)
		if was.hold == nil {
			continue
		}
		was.clock = was.next(now)
		if was.listings > was.hold.listings {
			was.hold.clock = was.clock
		}
		h.objects[p.object][p.ref] = was
	}
}

// wind sets the clock of a record, if it is held as before.
func (h *holds) wind(p part, was held) {
	is := h.of(p)
	if is.hold == nil || is.key() != was.key() {
		return
	}
	is.clock = was.clock
	if is.hold.listings == 0 || was.first.Before(is.hold.first) {
		is.hold.clock = was.clock
	}
	h.objects[p.object][p.ref] = is
}

// clone returns a copy that shares no mutable data.
func (h *holds) clone() *holds {
	next := newHolds()
	for object, records := range h.objects {
		for ref, was := range records {
			next.add(part{ref, object}, was.cause, was.since, was.terms, was.clock)
		}
	}
	for key, one := range next.by {
		one.clock = h.by[key].clock
	}
	return next
}

// adopt holds records for the source as a whole that an older Isthmus has marked, and
// removes their marks.
func (h *holds) adopt(marked []model.Write) {
	var since time.Time
	endpoints := 0
	for _, w := range marked {
		if at := w.Record.Status.Since; since.IsZero() || at.Before(since) {
			since = at
		}
		endpoints += endpointsIn(w.Record.Kind)
	}
	why := terms{fmt.Sprintf("not listed any more, together with %d endpoints of its source", endpoints), endpoints}
	for i := range marked {
		rec := &marked[i].Record
		if is := partOf(*rec); !h.has(is) {
			h.add(is, model.Ref{}, since, why, clock{})
		}
		rec.Status = model.Status{}
	}
}
