package source

import (
	"iter"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// difference is what must be written so that the store says what a reading
// says. Deletions are apart because they alone may be held back.
type difference struct {
	Upserts []model.Write
	Deletes []model.Write // each with the whole stored record
}

func (d *difference) writes() []model.Write {
	if len(d.Deletes) == 0 {
		return d.Upserts
	}
	return slices.Concat(d.Upserts, d.Deletes)
}

// update writes want over have, unless that would change nothing.
func (d *difference) update(have, want model.Record) {
	if want.SameContent(have) {
		return
	}
	want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
	d.Upserts = append(d.Upserts, model.Write{Record: want})
}

func (d *difference) remove(have model.Record) {
	d.Deletes = append(d.Deletes, model.Write{Record: have, Delete: true})
}

// diff compares the reading with what is stored. Stored must yield the stored
// record of every listed one, every stored object that the reading could judge
// gone or stale, and everything those own; in any order. A new mark of
// staleness is dated now.
//
// Owned records are judged last, for their fate is that of their owner and the
// order of stored says nothing about which of them comes first.
func (r *reading) diff(stored iter.Seq[model.Record], now time.Time) difference {
	var (
		d       difference
		found   = make([]bool, len(r.records))
		matched = 0                    // listed records that are stored
		stays   = map[model.Ref]bool{} // unlisted objects that are kept
		owned   []model.Record         // unlisted
	)
	for have := range stored {
		i, listed := r.at[have.Ref]
		switch {
		case listed && !found[i]:
			found[i] = true
			matched++
			d.update(have, r.records[i])
		case listed:
		case have.Owner != (model.Ref{}):
			owned = append(owned, have)
		case r.gone(have):
			d.remove(have)
		default:
			stays[have.Ref] = true
			d.update(have, r.marked(have, now))
		}
	}
	d.Upserts = slices.Grow(d.Upserts, len(r.records)-matched)
	for i, want := range r.records {
		if !found[i] {
			d.Upserts = append(d.Upserts, model.Write{Record: want})
		}
	}
	for _, have := range owned {
		if !stays[have.Owner] {
			d.remove(have)
		}
	}
	return d
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
	if f, ok := r.refused[have.Ref]; ok {
		return f.reason
	}
	if r.deleted[have.Ref] {
		return ""
	}
	return r.broken[have.Place]
}

// marked returns have with its staleness. A reason that already stands keeps
// the time it arose. Where its own place no longer speaks of it, it stands where
// it was refused from now on: else nobody would notice when it goes from there.
func (r *reading) marked(have model.Record, now time.Time) model.Record {
	reason := r.staleness(have)
	if reason != "" && reason != have.Status.Stale {
		have.Status = model.Status{Stale: reason, Since: now}
	}
	if f := r.refused[have.Ref]; f.place != "" && r.silent(have.Place) {
		have.Place = f.place
	}
	return have
}

// silent reports whether all of a place was read and understood. It says
// nothing of what is not listed, then.
func (r *reading) silent(place string) bool {
	return (r.whole || r.places[place]) && r.broken[place] == ""
}
