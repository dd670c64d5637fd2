package source

import (
	"iter"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// difference is what must be written so that the store says what a reading
// says. Deletions are apart because they alone may be held back, and among
// them those that the registry reported itself, because they may not.
type difference struct {
	Upserts []model.Write
	Deletes []model.Write  // reported one by one, each with the whole stored record
	Missing []model.Record // as stored, not listed any more

	Held     int    // records that the reading concerns and that are held
	Returned []part // held so far, and there again although not listed: rejected
	Survived []bool // whether each record of the reading was stored already
}

// update writes want over have, unless that would change nothing.
func (d *difference) update(have, want model.Record) {
	if want.SameContent(have) {
		return
	}
	want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
	d.Upserts = append(d.Upserts, model.Write{Record: want})
}

func (d *difference) remove(have model.Record, reported bool) {
	if reported {
		d.Deletes = append(d.Deletes, deletion(have))
	} else {
		d.Missing = append(d.Missing, have)
	}
}

func deletion(have model.Record) model.Write { return model.Write{Record: have, Delete: true} }

// diff compares the reading with what is stored. Stored must yield the stored
// record of every listed one, every stored object that the reading could judge
// gone or stale, and everything those own; in any order. A new mark of
// staleness is dated now.
//
// Owned records are judged last, for they stay or go with their owner and the
// order of stored says nothing about which of them comes first.
func (r *reading) diff(stored iter.Seq[model.Record], held *holds, now time.Time) difference {
	var (
		d        difference
		found    = make([]bool, len(r.records))
		matched  = 0                    // listed records that are stored
		stays    = map[model.Ref]bool{} // unlisted objects that are kept
		reported = map[model.Ref]bool{} // unlisted objects that the registry reported gone
		owned    []model.Record         // unlisted
	)
	d.Survived = found
	for have := range stored {
		isHeld := !held.empty() && held.has(partOf(have))
		if isHeld {
			d.Held++
		}
		i, listed := r.at[have.Ref]
		switch {
		case have.Kind.Reserved():
		case listed && !found[i]:
			found[i] = true
			matched++
			d.update(have, r.records[i])
		case listed:
		case have.Owner != (model.Ref{}):
			owned = append(owned, have)
		case r.gone(have):
			reported[have.Ref] = r.reported(have)
			d.remove(have, reported[have.Ref])
		default:
			stays[have.Ref] = true
			d.stay(have, r.marked(have, isHeld, now), isHeld && r.isThere(have))
		}
	}
	d.Upserts = slices.Grow(d.Upserts, len(r.records)-matched)
	for i, want := range r.records {
		if !found[i] {
			d.Upserts = append(d.Upserts, model.Write{Record: want})
		}
	}
	returned := map[model.Ref]bool{}
	for _, is := range d.Returned {
		returned[is.ref] = true
	}
	d.Missing = slices.Grow(d.Missing, len(owned))
	for _, have := range owned {
		if r.dropped[have.Ref] || !stays[have.Owner] {
			d.remove(have, !r.lists() || reported[have.Owner])
			continue
		}
		d.stay(have, have, returned[have.Owner] && held.has(partOf(have)))
	}
	return d
}

// stay keeps an unlisted record, perhaps with another status. It may have
// returned: it was held, and is known to be there.
func (d *difference) stay(have, want model.Record, returned bool) {
	d.update(have, want)
	if returned {
		d.Returned = append(d.Returned, partOf(have))
	}
}

// isThere reports whether an unlisted object is known to be in the registry.
func (r *reading) isThere(have model.Record) bool {
	_, rejected := r.rejected[have.Ref]
	return rejected
}

// reported reports whether the registry itself reported the end of an object
// that is gone, rather than leaving the object out.
func (r *reading) reported(have model.Record) bool {
	return !r.lists() || r.removed[have.Place]
}

// gone reports whether an unlisted object has left the registry.
func (r *reading) gone(have model.Record) bool {
	switch {
	case r.staleness(have) != "":
		return false
	case r.places != nil:
		return r.places[have.Place]
	default:
		return r.whole || r.deleted[have.Ref]
	}
}

// staleness says why the last good version of an unlisted object stays, empty
// if nothing keeps it. What is reported deleted by name is not kept by a broken
// place.
func (r *reading) staleness(have model.Record) string {
	if f, ok := r.rejected[have.Ref]; ok {
		return f.reason
	}
	if r.deleted[have.Ref] {
		return ""
	}
	return r.unreadable(have)
}

// unreadable says why nothing is known of what is not listed where an object stands,
// empty if that was read.
func (r *reading) unreadable(have model.Record) string {
	if reason, is := r.broken[placeIn{have.Place, ""}]; is {
		return reason
	}
	return r.broken[placeIn{have.Place, have.Namespace}]
}

// marked returns have with its staleness. A reason that already stands keeps
// the time it arose. What is held stays so unless it is known to be there. Where
// its own place no longer speaks of it, it stands where it was rejected from now
// on: else nobody would notice when it goes from there.
func (r *reading) marked(have model.Record, held bool, now time.Time) model.Record {
	if held && !r.isThere(have) {
		return have
	}
	reason := r.staleness(have)
	if reason != "" && reason != have.Status.Stale {
		have.Status = model.Status{Stale: reason, Since: now}
	}
	if f := r.rejected[have.Ref]; f.place != "" && r.silent(have) {
		have.Place = f.place
	}
	return have
}

// silent reports whether the place where an object stands was read and understood. It
// says nothing of what is not listed, then.
func (r *reading) silent(have model.Record) bool {
	return (r.whole || r.places[have.Place]) && r.unreadable(have) == ""
}
