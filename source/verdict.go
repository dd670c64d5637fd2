package source

import (
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// verdict is what becomes of a difference: what is written now, and what is
// held afterwards. It takes effect once the writes are committed.
type verdict struct {
	writes []model.Write

	back, left []model.Ref // not held any more
	held       []model.Record
	causes     []model.Ref // of those held
	counts     map[model.Ref]count
	began      []model.Ref // causes that are news
}

// count is how far a drop is confirmed.
type count struct {
	listings int
	first    time.Time
	back     int  // records that are listed again
	lie      bool // see [tally.lie]
}

// confirms reports whether the drop is confirmed. What is left of one that has
// proved to be a lie is believed once it is missing again: it is what any source
// loses every day.
func (c count) confirms(cfg Hold, now time.Time) bool {
	return cfg.Confirms(c.listings, c.first, now) || c.lie && c.listings > 1
}

// rule decides about a difference: deletions that the registry reported pass,
// and of what is merely missing, fates tells what is held. A drop that this
// listing confirms often enough passes, too.
func (h *holds) rule(r *reading, d difference, fates []fate, cfg Hold, now time.Time) verdict {
	v := verdict{writes: d.Upserts, counts: map[model.Ref]count{}}
	tallies := h.tally(r, d, fates, &v)
	released := map[model.Ref]bool{}
	for cause, t := range tallies {
		var c count
		one := h.by[cause]
		if one != nil {
			c = count{one.listings, one.first, one.back, one.lie}
			t.silent = one.records - t.again - t.back - t.left
		}
		c.listings, c.first = t.next(c.listings, c.first, now, r.lists())
		c.judge(r, t, cfg)
		released[cause] = r.lists() && c.confirms(cfg, now)
		v.counts[cause] = c
		if one == nil {
			v.began = append(v.began, cause)
		}
	}
	v.writes = append(v.writes, d.Deletes...)
	since := now.UTC().Round(0)
	for i, rec := range d.Missing {
		f := fates[i]
		switch {
		case !f.held:
			v.writes = append(v.writes, deletion(rec))
		case released[f.cause]:
			v.writes = append(v.writes, deletion(rec))
			v.left = append(v.left, rec.Ref)
		default:
			v.held, v.causes = append(v.held, rec), append(v.causes, f.cause)
			if rec.Status.Held == "" {
				rec.Status = model.Status{Held: h.reason(f.cause, tallies[f.cause]), Since: since}
				v.writes = append(v.writes, model.Write{Record: rec})
			}
		}
	}
	return v
}

// judge has a reading say whether the drop is a lie. What goes missing anew
// begins another drop, and a reading that cannot speak of all of it proves nothing.
func (c *count) judge(r *reading, t *tally, cfg Hold) {
	if c.back += t.back; t.fresh > 0 {
		c.back = 0
	}
	if r.lists() && t.silent == 0 || t.fresh > 0 {
		c.lie = t.lie(c.back, cfg)
	}
}

// tally counts what the reading says about everything that is held, and notes
// what is not held any more.
func (h *holds) tally(r *reading, d difference, fates []fate, v *verdict) map[model.Ref]*tally {
	tallies := map[model.Ref]*tally{}
	of := func(cause model.Ref) *tally {
		t := tallies[cause]
		if t == nil {
			t = &tally{}
			tallies[cause] = t
		}
		return t
	}
	back := func(ref model.Ref) {
		if m, held := h.of[ref]; held {
			of(m.hold.cause).back++
			v.back = append(v.back, ref)
		}
	}
	if !h.empty() {
		for i := range r.records {
			back(r.records[i].Ref)
		}
	}
	for _, ref := range d.Returned {
		back(ref)
	}
	for _, w := range d.Deletes {
		if m, held := h.of[w.Record.Ref]; held {
			of(m.hold.cause).left++
			v.left = append(v.left, w.Record.Ref)
		}
	}
	for i, rec := range d.Missing {
		if !fates[i].held {
			continue
		}
		t, m := of(fates[i].cause), h.of[rec.Ref]
		t.drop = t.drop || !fates[i].before
		if m.hold != nil && m.hold.cause == fates[i].cause {
			t.again++
			t.remaining += endpointsIn(rec.Kind)
			continue
		}
		t.fresh++
		t.endpoints += endpointsIn(rec.Kind)
		if m.hold != nil {
			of(m.hold.cause).left++
		}
	}
	return tallies
}

// apply makes the verdict what is remembered.
func (h *holds) apply(v verdict) {
	for _, ref := range v.back {
		h.drop(ref)
	}
	for _, ref := range v.left {
		h.drop(ref)
	}
	for i, rec := range v.held {
		h.add(rec, v.causes[i])
	}
	for cause, c := range v.counts {
		if one := h.by[cause]; one != nil {
			one.listings, one.first, one.back, one.lie = c.listings, c.first, c.back, c.lie
		}
	}
}

// reason says on a record why it is held.
func (h *holds) reason(cause model.Ref, t *tally) string {
	n := t.endpoints
	if one := h.by[cause]; one != nil {
		n += one.endpoints
	}
	switch {
	case cause == (model.Ref{}) && n == 0:
		return "not listed any more, together with everything else of its source at once"
	case cause == (model.Ref{}):
		return fmt.Sprintf("not listed any more, together with %d endpoints of its source at once", n)
	}
	return fmt.Sprintf("not listed any more, together with all %d endpoints of %s at once", n, describe(cause))
}
