package reading

import (
	"iter"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// Difference lists the changes that make the store match a reading. Deletions are
// separate because only they may be held. Deletions that the registry reported itself
// are separate because they may not.
type Difference struct {
	Upserts []model.Write
	Deletes []model.Write  // reported one by one, each with the whole stored record
	Missing []model.Record // as stored, not listed any more

	Held     int          // held records that the reading concerns
	Returned []index.Part // held so far, and present again although not listed: rejected
	Survived []bool       // whether each record of the reading was stored already
}

// update replaces have by want, unless that would change nothing.
func (d *Difference) update(have, want model.Record) {
	if want.SameContent(have) {
		return
	}
	want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
	d.Upserts = append(d.Upserts, model.Write{Record: want})
}

func (d *Difference) remove(have model.Record, reported bool) {
	if reported {
		d.Deletes = append(d.Deletes, Deletion(have))
	} else {
		d.Missing = append(d.Missing, have)
	}
}

// Deletion returns the write that deletes a stored record.
func Deletion(have model.Record) model.Write { return model.Write{Record: have, Delete: true} }

// Compare compares the reading with the stored records. Stored must yield, in any order,
// the stored version of every listed record. It must also yield every stored object
// that the reading could judge gone or stale, with all owned records. A new mark of
// staleness is dated now. Held reports whether a stored record is held; nil if none is.
//
// Owned records are judged last. They stay or go with their owner, and stored yields
// owners and owned records in any order.
func (r *Reading) Compare(stored iter.Seq[model.Record], held func(model.Record) bool, now time.Time) Difference {
	var (
		d        Difference
		found    = make([]bool, len(r.Records))
		matched  = 0                    // listed records that are stored
		stays    = map[model.Ref]bool{} // unlisted objects that are kept
		reported = map[model.Ref]bool{} // unlisted objects that the registry reported gone
		owned    []model.Record         // unlisted
	)
	d.Survived = found
	for have := range stored {
		isHeld := held != nil && held(have)
		if isHeld {
			d.Held++
		}
		i, listed := r.at[have.Ref]
		switch {
		case have.Kind.Reserved():
		case listed && !found[i]:
			found[i] = true
			matched++
			d.update(have, r.Records[i])
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
	d.Upserts = slices.Grow(d.Upserts, len(r.Records)-matched)
	for i, want := range r.Records {
		if !found[i] {
			d.Upserts = append(d.Upserts, model.Write{Record: want})
		}
	}
	returned := map[model.Ref]bool{}
	for _, is := range d.Returned {
		returned[is.Ref] = true
	}
	d.Missing = slices.Grow(d.Missing, len(owned))
	for _, have := range owned {
		if r.Dropped[have.Ref] || !stays[have.Owner] {
			d.remove(have, !r.Lists() || reported[have.Owner])
			continue
		}
		d.stay(have, have, returned[have.Owner] && held(have))
	}
	return d
}

// stay keeps an unlisted record, perhaps with another status. Returned means that it
// was held, and is known to be present.
func (d *Difference) stay(have, want model.Record, returned bool) {
	d.update(have, want)
	if returned {
		d.Returned = append(d.Returned, index.PartOf(have))
	}
}

// isThere reports whether an unlisted object is known to be in the registry.
func (r *Reading) isThere(have model.Record) bool {
	_, rejected := r.rejected[have.Ref]
	return rejected
}

// reported reports whether the registry itself reported the end of an object, rather
// than leaving the object out.
func (r *Reading) reported(have model.Record) bool {
	return !r.Lists() || r.Removed[have.Place]
}

// gone reports whether an unlisted object has left the registry.
func (r *Reading) gone(have model.Record) bool {
	switch {
	case r.staleness(have) != "":
		return false
	case r.places != nil:
		return r.places[have.Place]
	default:
		return r.Whole || r.Deleted[have.Ref]
	}
}

// staleness returns why the last good version of an unlisted object stays, empty if
// it does not. An object that is reported deleted by name does not stay for a broken
// place.
func (r *Reading) staleness(have model.Record) string {
	if f, ok := r.rejected[have.Ref]; ok {
		return f.reason
	}
	if r.Deleted[have.Ref] {
		return ""
	}
	return r.unreadable(have)
}

// unreadable returns why the place of an unlisted object is not known completely,
// empty if it was read.
func (r *Reading) unreadable(have model.Record) string {
	if reason, is := r.broken[placeIn{have.Place, ""}]; is {
		return reason
	}
	return r.broken[placeIn{have.Place, have.Namespace}]
}

// marked returns have with its staleness. An unchanged reason keeps its time. A held
// object keeps its status unless it is known to be present. If its own place was read
// without it, it moves to the place of its rejection: else its end there would not be
// noticed.
func (r *Reading) marked(have model.Record, held bool, now time.Time) model.Record {
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

// silent reports whether the place of an object was read and understood without it.
func (r *Reading) silent(have model.Record) bool {
	return (r.Whole || r.places[have.Place]) && r.unreadable(have) == ""
}
