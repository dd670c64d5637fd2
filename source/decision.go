package source

import (
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// plan is the outcome of a decision about a difference: the writes, and the changes
// of holds.
type plan struct {
	writes []model.Write

	back, left []part   // not held any more: listed again, or deleted
	confirmed  []part   // the part of left that listings have confirmed to be gone
	held       []caused // held from now on
	lacked     []part   // held after this, and lacking in one more listing
	terms      map[model.Ref]terms
	began      []model.Ref // causes without held records before

	deleted    []model.Record // without having been held
	departures []departed     // the deleted records that may come back
	turnover
	falls, explained numbers
}

// caused is a held record with its cause.
type caused struct {
	part
	cause model.Ref
}

// touches reports whether a plan concerns held records.
func (p plan) touches() bool {
	return len(p.back)+len(p.left)+len(p.lacked)+len(p.held) > 0
}

// decide plans the outcome of a difference. Deletions that the registry reported are
// carried out. Of the records that are merely missing, cause selects the ones to hold
// from now on; the rest is deleted. A held record is deleted once enough listings
// lacked it. A missing object stays as long as any record that it owns.
func (h *holds) decide(r *reading, d difference, cause func(model.Record) (model.Ref, bool), cfg Hold, now time.Time) plan {
	p := plan{writes: d.Upserts, terms: map[model.Ref]terms{}}
	h.ends(r, d, &p)
	p.writes = append(p.writes, d.Deletes...)
	stays, owners, fresh := h.stays(d.Missing, cause, func(c clock) bool {
		c = c.next(now)
		return r.lists() && cfg.Confirms(c.listings, c.first, now)
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
	p.held, p.lacked = make([]caused, 0, fresh+len(missing)), make([]part, 0, stay+len(missing))
	for i, rec := range d.Missing {
		is, object := partOf(rec), head(rec)
		one, whole := h.of(is), missing[object]
		switch {
		case one.hold != nil && (stays[i] || whole && is.ref == object):
			p.lacked = append(p.lacked, is)
		case one.hold != nil:
			p.writes, p.left, p.confirmed = append(p.writes, deletion(rec)), append(p.left, is), append(p.confirmed, is)
		case stays[i]:
			by, _ := cause(rec)
			p.held = append(p.held, caused{is, by})
		case whole:
			p.held = append(p.held, caused{is, owners[object]})
		default:
			p.writes, p.deleted = append(p.writes, deletion(rec)), append(p.deleted, rec)
		}
	}
	had := h.causes()
	for _, c := range p.held {
		if !had[c.cause] {
			had[c.cause] = true
			p.began = append(p.began, c.cause)
		}
	}
	for _, c := range p.held {
		p.lacked = append(p.lacked, c.part)
	}
	if !r.lists() {
		p.lacked = nil
	}
	return p
}

// ends adds the end of holds: records that are listed again or reported as deleted.
func (h *holds) ends(r *reading, d difference, p *plan) {
	if h.empty() {
		return
	}
	p.back = make([]part, 0, min(h.stock.stored, len(r.records))+len(d.Returned))
	for i := range r.records {
		if is := partOf(r.records[i]); h.has(is) {
			p.back = append(p.back, is)
		}
	}
	p.back = append(p.back, d.Returned...)
	for _, w := range d.Deletes {
		if is := partOf(w.Record); h.has(is) {
			p.left = append(p.left, is)
		}
	}
}

// stays returns which missing records are held after this by themselves, and their
// owners with their cause. Fresh is the number of them that are not held yet.
func (h *holds) stays(missing []model.Record, cause func(model.Record) (model.Ref, bool), confirmed func(clock) bool, p *plan) (stays []bool, owners map[model.Ref]model.Ref, fresh int) {
	stays, owners = make([]bool, len(missing)), map[model.Ref]model.Ref{}
	var last model.Ref
	for i, rec := range missing {
		var by model.Ref
		if one := h.of(partOf(rec)); one.hold == nil {
			if by, stays[i] = cause(rec); stays[i] {
				fresh++
			}
		} else if stays[i] = !confirmed(one.clock); stays[i] {
			by = one.cause
			setDefault(p.terms, by, one.terms)
		}
		if object := head(rec); stays[i] && object != last {
			owners[object], last = by, object
		}
	}
	return stays, owners, fresh
}

// apply applies a plan to the holds, and returns the records that are not held any more.
func (h *holds) apply(p plan, now time.Time) (dropped map[part]held) {
	dropped = make(map[part]held, len(p.back)+len(p.left))
	for _, list := range [][]part{p.back, p.left} {
		for _, is := range list {
			if was := h.drop(is); was.hold != nil {
				dropped[is] = was
			}
		}
	}
	for _, c := range p.held {
		h.add(c.part, c.cause, now, p.terms[c.cause], clock{})
	}
	return dropped
}

// terms returns for each cause of a suspicion why records are held.
func (s suspicion) terms(cfg Hold) map[model.Ref]terms {
	all := map[model.Ref]terms{}
	for service, n := range s.services {
		all[service] = terms{fmt.Sprintf("not listed any more, together with all %d endpoints of %s within %s", n.mark, describe(service), cfg.For), n.mark}
	}
	if s.whole && s.lost == 0 {
		all[model.Ref{}] = terms{"not listed any more, together with everything else of its source at once", 0}
	} else if s.whole {
		all[model.Ref{}] = terms{fmt.Sprintf("not listed any more, together with %d endpoints of its source within %s", s.lost, cfg.For), s.lost}
	}
	return all
}
