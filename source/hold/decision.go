package hold

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Decision is the outcome of a reading: the writes to commit, and the changes of holds.
type Decision struct {
	Writes []model.Write
	Held   []Caused            // held from now on
	Lacked []index.Part        // held after this, and lacking in one more listing
	Terms  map[model.Ref]Terms // by cause, of the records in Held
	Began  []model.Ref         // causes without held records before

	back, left []index.Part   // not held any more: listed again, or deleted
	confirmed  []index.Part   // gone for a reason: listings have confirmed it
	deleted    []model.Record // without having been held

	losses
}

// Caused is a held record with its cause.
type Caused struct {
	index.Part
	Cause model.Ref
}

// Touches reports whether a decision concerns held records.
func (d Decision) Touches() bool { return len(d.back)+len(d.left)+len(d.Lacked)+len(d.Held) > 0 }

// A Cause returns the cause for which a missing record is held from now on.
type Cause func(missing model.Record) (cause model.Ref, held bool)

// Nothing is the cause of records that are not suspicious.
func Nothing(model.Record) (model.Ref, bool) { return model.Ref{}, false }

// Decide decides about the difference of a listing. Deletions that the registry reported
// are carried out. Of the records that are merely missing, cause selects the ones to hold
// from now on; the rest is deleted. A held record is deleted once enough listings lacked
// it; a listing that is not complete counts for none. A missing object stays as long as
// any record that it owns.
func (h *Holds) Decide(listed []model.Record, d reading.Difference, cause Cause, cfg Config, complete bool, now time.Time) Decision {
	p := h.Report(listed, d)
	p.Terms = map[model.Ref]Terms{}
	stays, owners, fresh := h.stays(d.Missing, cause, func(c Clock) bool {
		c = c.Next(now)
		return complete && cfg.Confirms(c.Listings, c.First, now)
	}, &p)
	missing := map[model.Ref]bool{} // objects that stay for their owned records
	stay := 0
	for i, rec := range d.Missing {
		if stays[i] {
			stay++
		}
		if _, some := owners[rec.Ref]; some && rec.Owner == (model.Ref{}) {
			missing[rec.Ref] = true
		}
	}
	p.Held, p.Lacked = make([]Caused, 0, fresh+len(missing)), make([]index.Part, 0, stay+len(missing))
	for i, rec := range d.Missing {
		is, object := index.PartOf(rec), index.Head(rec)
		one, whole := h.Of(is), missing[object]
		switch {
		case one.Hold != nil && (stays[i] || whole && is.Ref == object):
			p.Lacked = append(p.Lacked, is)
		case one.Hold != nil:
			p.Writes, p.left, p.confirmed = append(p.Writes, reading.Deletion(rec)), append(p.left, is), append(p.confirmed, is)
		case stays[i]:
			by, _ := cause(rec)
			p.Held = append(p.Held, Caused{is, by})
		case whole:
			p.Held = append(p.Held, Caused{is, owners[object]})
		default:
			p.Writes, p.deleted = append(p.Writes, reading.Deletion(rec)), append(p.deleted, rec)
		}
	}
	had := h.causes()
	for _, c := range p.Held {
		if !had[c.Cause] {
			had[c.Cause] = true
			p.Began = append(p.Began, c.Cause)
		}
	}
	for _, c := range p.Held {
		p.Lacked = append(p.Lacked, c.Part)
	}
	if !complete {
		p.Lacked = nil
	}
	return p
}

// Report decides about the difference of a change, which lacks no record: everything is
// written, and held records that are listed again or reported deleted are held no more.
func (h *Holds) Report(listed []model.Record, d reading.Difference) Decision {
	p := Decision{Writes: d.Upserts}
	p.Writes = append(p.Writes, d.Deletes...)
	if h.Empty() {
		return p
	}
	p.back = make([]index.Part, 0, min(h.Stock.Stored, len(listed))+len(d.Returned))
	for i := range listed {
		if is := index.PartOf(listed[i]); h.Has(is) {
			p.back = append(p.back, is)
		}
	}
	p.back = append(p.back, d.Returned...)
	for _, w := range d.Deletes {
		if is := index.PartOf(w.Record); h.Has(is) {
			p.left = append(p.left, is)
		}
	}
	return p
}

// rename deletes records that a listing has under another name.
func (h *Holds) rename(former []model.Record, p *Decision) {
	for _, rec := range former {
		is := index.PartOf(rec)
		p.Writes = append(p.Writes, reading.Deletion(rec))
		if h.Has(is) {
			p.left = append(p.left, is)
		}
	}
}

// stays returns which missing records are held after this by themselves, and their
// owners with their cause. Fresh is the number of them that are not held yet.
func (h *Holds) stays(missing []model.Record, cause Cause, confirmed func(Clock) bool, p *Decision) (stays []bool, owners map[model.Ref]model.Ref, fresh int) {
	stays, owners = make([]bool, len(missing)), map[model.Ref]model.Ref{}
	var last model.Ref
	for i, rec := range missing {
		var by model.Ref
		if one := h.Of(index.PartOf(rec)); one.Hold == nil {
			if by, stays[i] = cause(rec); stays[i] {
				fresh++
			}
		} else if stays[i] = !confirmed(one.Clock); stays[i] {
			by = one.cause
			if _, known := p.Terms[by]; !known {
				p.Terms[by] = one.Terms
			}
		}
		if object := index.Head(rec); stays[i] && object != last {
			owners[object], last = by, object
		}
	}
	return stays, owners, fresh
}

// Apply applies a decision, and returns the records that are held no more.
func (h *Holds) Apply(p Decision, now time.Time) (dropped map[index.Part]Held) {
	dropped = make(map[index.Part]Held, len(p.back)+len(p.left))
	for _, list := range [][]index.Part{p.back, p.left} {
		for _, is := range list {
			if was := h.drop(is); was.Hold != nil {
				dropped[is] = was
			}
		}
	}
	for _, c := range p.Held {
		h.add(c.Part, c.Cause, now, p.Terms[c.Cause], Clock{})
	}
	return dropped
}
