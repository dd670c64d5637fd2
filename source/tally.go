package source

import "time"

// tally is what one reading says about what is held for one cause.
type tally struct {
	again  int // missing as before
	fresh  int // missing, and not held for this cause before
	back   int // listed again
	left   int // deleted, or held for another cause now
	silent int // of which it says nothing

	remaining int  // endpoints among those missing as before
	drop      bool // what is missing is a suspicious drop by itself
}

// lie reports whether the drop has proved to be one: nothing more is missing,
// most of what was held is back, so many records in all, and the rest is no
// suspicious drop by itself and is few: fewer endpoints than are ever looked at,
// or a tenth of all. A registry that comes back by halves has not proved it yet.
func (t tally) lie(back int, cfg Hold) bool {
	few := t.remaining < cfg.Min && back > t.again || 9*t.again <= back
	return few && t.fresh == 0 && !t.drop && t.again > 0
}

// after returns how far the drop is confirmed after a reading.
func (t tally) after(c count, r *reading, cfg Hold, now time.Time) count {
	c.listings, c.first = t.next(c.listings, c.first, now, r.lists())
	if c.back += t.back; t.fresh > 0 {
		c.back = 0 // what is missing anew begins another drop
	}
	// A reading that cannot speak of all of it proves nothing.
	if r.lists() && t.silent == 0 || t.fresh > 0 {
		c.lie = t.lie(c.back, cfg)
	}
	return c
}

// next returns how often the drop is confirmed after a reading, and since when.
func (t tally) next(listings int, first, now time.Time, listing bool) (int, time.Time) {
	equal := t.fresh == 0 && t.back == 0 && listings > 0
	switch {
	case equal && (!listing || t.silent > 0):
		return listings, first
	case equal:
		return listings + 1, first
	case listing && t.silent == 0:
		return 1, now
	default:
		return 0, time.Time{}
	}
}

// confirms reports whether the drop is confirmed. What is left of one that has
// proved to be a lie goes once it is missing again: it is what any source loses
// every day.
func (c count) confirms(cfg Hold, now time.Time) bool {
	return cfg.Confirms(c.listings, c.first, now) || c.lie && c.listings > 1
}
