package hold

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// Holds are the held records of a source. The store has them, too, with cause and
// begin. The number of listings that lacked each of them is only in memory, and
// begins anew with the process.
//
// Each record has its own clock. A listing that lacks the record advances it; a
// listing with the record ends the hold. A listing of other places, or with an
// unreadable place of the record, does neither.
type Holds struct {
	objects map[model.Ref]map[model.Ref]Held // of each object, the held records
	by      map[Key]*Hold
	Stock   index.Stock // all Held records

	changed map[Key]bool // holds that differ from the store
}

// Key names a hold: its cause, and its begin in nanoseconds.
type Key struct {
	cause model.Ref
	since int64
}

// Compare orders keys by cause and begin.
func (k Key) Compare(o Key) int {
	return cmp.Or(k.cause.Compare(o.cause), cmp.Compare(k.since, o.since))
}

// Hold has the records that one listing found missing for one cause.
type Hold struct {
	Terms
	cause   model.Ref
	Since   time.Time
	Stock   index.Stock
	objects map[model.Ref]int // records of each
	Clock                     // of the record that is confirmed first
	parts   uint32            // records of the store that name its records
}

// Terms describe a hold for people.
type Terms struct {
	Reason string
	Had    int // the endpoints that the causing service had, or the source
}

// Held is a held record.
type Held struct {
	*Hold
	Clock
}

// Clock counts the listings that lacked a record since the process began.
type Clock struct {
	Listings int
	First    time.Time // when the first of them came
}

// Next returns the clock after one more listing.
func (c Clock) Next(now time.Time) Clock {
	if c.Listings == 0 {
		c.First = now
	}
	c.Listings++
	return c
}

// NewHolds returns no holds.
func NewHolds() *Holds {
	return &Holds{objects: map[model.Ref]map[model.Ref]Held{}, by: map[Key]*Hold{}, changed: map[Key]bool{}}
}

// Empty reports whether no record is held.
func (h *Holds) Empty() bool { return len(h.by) == 0 }

// Key returns the key of a hold.
func (one *Hold) Key() Key { return Key{one.cause, one.Since.UnixNano()} }

// Of returns the hold of a record; its hold is nil if it is not held.
func (h *Holds) Of(p index.Part) Held { return h.objects[p.Object][p.Ref] }

// Has reports whether a record is held.
func (h *Holds) Has(p index.Part) bool { return h.Of(p).Hold != nil }

// All yields every hold.
func (h *Holds) All() iter.Seq2[Key, *Hold] { return maps.All(h.by) }

// Get returns a hold; nil if there is none.
func (h *Holds) Get(key Key) *Hold { return h.by[key] }

// ownedBy counts the held records that an object owns.
func (h *Holds) ownedBy(object model.Ref) int {
	n := len(h.objects[object])
	if h.Has(index.Part{Ref: object, Object: object}) {
		n--
	}
	return n
}

// causes returns the causes of all holds.
func (h *Holds) causes() map[model.Ref]bool {
	causes := make(map[model.Ref]bool, len(h.by))
	for key := range h.by {
		causes[key.cause] = true
	}
	return causes
}

// add holds a record that is not held yet.
func (h *Holds) add(p index.Part, cause model.Ref, since time.Time, why Terms, at Clock) {
	since = since.UTC().Round(0)
	key := Key{cause, since.UnixNano()}
	one := h.by[key]
	if one == nil {
		one = &Hold{cause: cause, Since: since, Terms: why, Clock: at, objects: map[model.Ref]int{}}
		h.by[key] = one
	}
	if h.objects[p.Object] == nil {
		h.objects[p.Object] = map[model.Ref]Held{}
	}
	h.objects[p.Object][p.Ref] = Held{one, at}
	h.Stock.Add(p.Ref, +1)
	one.Stock.Add(p.Ref, +1)
	one.objects[p.Object]++
	h.changed[key] = true
}

// drop ends the hold of a record, and returns it.
func (h *Holds) drop(p index.Part) Held {
	was := h.Of(p)
	one := was.Hold
	if one == nil {
		return was
	}
	key := one.Key()
	h.changed[key] = true
	if delete(h.objects[p.Object], p.Ref); len(h.objects[p.Object]) == 0 {
		delete(h.objects, p.Object)
	}
	h.Stock.Add(p.Ref, -1)
	one.Stock.Add(p.Ref, -1)
	if one.objects[p.Object]--; one.objects[p.Object] == 0 {
		delete(one.objects, p.Object)
	}
	if one.Stock.Stored == 0 {
		delete(h.by, key)
	}
	return was
}

// Tick counts a listing that lacks held records.
func (h *Holds) Tick(lacked []index.Part, now time.Time) {
	for _, p := range lacked {
		was := h.Of(p)
		if was.Hold == nil {
			continue
		}
		was.Clock = was.Next(now)
		if was.Listings > was.Hold.Listings {
			was.Hold.Clock = was.Clock
		}
		h.objects[p.Object][p.Ref] = was
	}
}

// wind sets the clock of a record, if it is held as before.
func (h *Holds) wind(p index.Part, was Held) {
	is := h.Of(p)
	if is.Hold == nil || is.Key() != was.Key() {
		return
	}
	is.Clock = was.Clock
	if is.Hold.Listings == 0 || was.First.Before(is.Hold.First) {
		is.Hold.Clock = was.Clock
	}
	h.objects[p.Object][p.Ref] = is
}

// Clone returns a copy that shares no mutable data.
func (h *Holds) Clone() *Holds {
	next := NewHolds()
	for object, records := range h.objects {
		for ref, was := range records {
			next.add(index.Part{Ref: ref, Object: object}, was.cause, was.Since, was.Terms, was.Clock)
		}
	}
	for key, one := range next.by {
		one.Clock = h.by[key].Clock
	}
	return next
}

// adopt holds records for the source as a whole that an older Isthmus has marked, and
// removes their marks.
func (h *Holds) adopt(marked []model.Write) {
	var since time.Time
	endpoints := 0
	for _, w := range marked {
		if at := w.Record.Status.Since; since.IsZero() || at.Before(since) {
			since = at
		}
		endpoints += index.EndpointsIn(w.Record.Kind)
	}
	why := Terms{fmt.Sprintf("not listed any more, together with %d endpoints of its source", endpoints), endpoints}
	for i := range marked {
		rec := &marked[i].Record
		if is := index.PartOf(*rec); !h.Has(is) {
			h.add(is, model.Ref{}, since, why, Clock{})
		}
		rec.Status = model.Status{}
	}
}
