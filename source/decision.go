package source

import (
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// plan is what becomes of a difference: what is written, and what is held
// afterwards.
type plan struct {
	writes []model.Write

	back, left []part   // not held any more
	held       []caused // and were not, or for another cause
	counts     map[model.Ref]count
	began      []model.Ref // causes that are new
}

// caused is a record that is held, and for what.
type caused struct {
	part
	cause model.Ref
}

// decide plans what becomes of a difference: deletions that the registry reported
// pass, and of what is merely missing, decisions says what is held. A drop that
// this listing confirms often enough passes, too.
func (h *holds) decide(r *reading, d difference, decisions []decision, cfg Hold, now time.Time) plan {
	p := plan{writes: d.Upserts, counts: map[model.Ref]count{}}
	released, fresh := map[model.Ref]bool{}, 0
	for cause, t := range h.tally(r, d, decisions, &p) {
		var c count
		one := h.by[cause]
		if one == nil {
			p.began = append(p.began, cause)
		} else {
			c = one.count
			t.silent = one.stock.stored - t.again - t.back - t.left
		}
		c = t.after(c, r, cfg, now)
		released[cause] = r.lists() && c.confirms(cfg, now)
		p.counts[cause] = c
		fresh += t.fresh
	}
	p.held = make([]caused, 0, fresh) // which may be everything there is
	p.writes = append(p.writes, d.Deletes...)
	for i, rec := range d.Missing {
		switch cause := decisions[i].cause; {
		case !decisions[i].held:
			p.writes = append(p.writes, deletion(rec))
		case released[cause]:
			p.writes = append(p.writes, deletion(rec))
			p.left = append(p.left, partOf(rec))
		default:
			p.hold(caused{partOf(rec), cause}, h.of(partOf(rec)))
		}
	}
	return p
}

// hold plans that a record is held, which may be so already.
func (p *plan) hold(c caused, now *hold) {
	if now == nil || now.cause != c.cause {
		p.held = append(p.held, c)
	}
}

// tally counts what the reading says about everything that is held, and notes
// what is not held any more.
func (h *holds) tally(r *reading, d difference, decisions []decision, p *plan) map[model.Ref]*tally {
	tallies := map[model.Ref]*tally{}
	of := func(cause model.Ref) *tally {
		t := tallies[cause]
		if t == nil {
			t = &tally{}
			tallies[cause] = t
		}
		return t
	}
	back := func(is part) {
		if one := h.of(is); one != nil {
			of(one.cause).back++
			p.back = append(p.back, is)
		}
	}
	if !h.empty() {
		for i := range r.records {
			back(partOf(r.records[i]))
		}
	}
	for _, is := range d.Returned {
		back(is)
	}
	for _, w := range d.Deletes {
		if one := h.of(partOf(w.Record)); one != nil {
			of(one.cause).left++
			p.left = append(p.left, partOf(w.Record))
		}
	}
	for i, rec := range d.Missing {
		if !decisions[i].held {
			continue
		}
		t, one := of(decisions[i].cause), h.of(partOf(rec))
		t.drop = t.drop || !decisions[i].before
		if one != nil && one.cause == decisions[i].cause {
			t.again++
			t.remaining += endpointsIn(rec.Kind)
			continue
		}
		t.fresh++
		if one != nil {
			of(one.cause).left++
		}
	}
	return tallies
}

// apply makes the plan what is held.
func (h *holds) apply(p plan, now time.Time) {
	for _, is := range p.back {
		h.drop(is)
	}
	for _, is := range p.left {
		h.drop(is)
	}
	grown := map[model.Ref]bool{}
	for _, c := range p.held {
		h.add(c.part, c.cause, now)
		grown[c.cause] = true
	}
	for cause := range grown {
		h.by[cause].explain()
	}
	h.recount(p.counts)
}

// explain says why something is held, and is asked when that becomes more.
func (one *hold) explain() {
	switch n := one.stock.endpoints; {
	case one.cause == (model.Ref{}) && n == 0:
		one.reason = "not listed any more, together with everything else of its source at once"
	case one.cause == (model.Ref{}):
		one.reason = fmt.Sprintf("not listed any more, together with %d endpoints of its source at once", n)
	default:
		one.reason = fmt.Sprintf("not listed any more, together with all %d endpoints of %s at once", n, describe(one.cause))
	}
}
