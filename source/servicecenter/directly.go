package servicecenter

import (
	"cmp"
	"slices"
)

// warySince is how many instances there have to be for the loss of most of them to
// be suspicious. The registry's protection of itself has the same bound.
const warySince = 5

// asksDirect is what to find directly: what is known to differ, that which was found
// longest ago first, or has just changed; and others in turn. Those of which more
// was new when they were found lately get three quarters of it.
func (s *state) asksDirect(most int) []ask {
	d := &s.directly
	var hot []Key
	for _, k := range s.keys {
		if e := s.entries[k]; e.known && (e.direct != nil || e.changed) {
			hot = append(hot, k)
		}
	}
	slices.SortStableFunc(hot, func(a, b Key) int { return cmp.Compare(s.entries[a].turn, s.entries[b].turn) })
	d.turn++
	asks := make([]ask, 0, most)
	take := func(k Key) {
		if e := s.entries[k]; e.known && e.turn != d.turn {
			e.turn, e.changed = d.turn, false
			asks = append(asks, ask{k, e.newest()})
		}
	}
	share := most / 4
	if d.fresh >= d.turns {
		share = most * 3 / 4
	}
	for _, k := range hot[:min(len(hot), max(1, share))] {
		take(k)
	}
	d.hot = len(asks)
	begin, _ := slices.BinarySearchFunc(s.keys, d.at, Key.compare)
	for n := 1; n <= len(s.keys) && len(asks) < most; n++ {
		d.at = s.keys[(begin+n)%len(s.keys)]
		take(d.at)
	}
	return asks
}

// newest is the revision that is known of a key.
func (e *entry) newest() string {
	if e.direct != nil {
		return e.direct.rev
	}
	return e.rev
}

// answerDirect takes what was found directly, and reports whether it begins to be
// suspicious.
func (s *state) answerDirect(asked []ask, answers []found) (begins bool) {
	d, changed := &s.directly, [2]int{}
	for n, a := range asked {
		if e := s.entries[a.Key]; e != nil && s.takeDirect(a, e, answers[n]) {
			if n < d.hot {
				changed[0]++
			} else {
				changed[1]++
			}
		}
	}
	d.fresh = average(d.fresh, changed[0], d.hot)
	d.turns = average(d.turns, changed[1], len(asked)-d.hot)
	wary := s.lacksMost()
	begins = wary && !d.wary
	if wary != d.wary {
		d.wary = wary
		for _, e := range s.entries {
			if e.direct != nil {
				s.touch(e)
			}
		}
	}
	return begins
}

// average is a share with another n of all taken in, the latest counting most.
func average(share float64, n, all int) float64 {
	if all == 0 {
		return share
	}
	return (share + float64(n)/float64(all)) / 2
}

// takeDirect takes one answer, and reports whether it says anything new. What fails, or makes no sense, is left to the finds
// that the registry answers from its cache.
func (s *state) takeDirect(a ask, e *entry, f found) bool {
	if _, foreign := s.foreign(a.Key, f.instances); f.err != nil || f.same || foreign {
		return false
	}
	if f.rev == e.rev {
		e.direct = nil
	} else {
		e.direct = &direct{f.rev, f.instances}
	}
	s.touch(e)
	return true
}

// lacksMost reports whether most of the instances that the registry shows are
// gone where it was looked directly; and has more be looked at in the next round
// if anything differs there.
func (s *state) lacksMost() bool {
	d, late, shown, lost := &s.directly, 0, 0, 0
	for _, e := range s.entries {
		if e.direct != nil {
			late++
			lost += max(0, len(e.instances)-len(e.direct.instances))
		}
		if e.direct != nil || e.turn == d.turn {
			shown += len(e.instances)
		}
	}
	if late > 0 {
		d.most = min(mostKeys, 2*max(d.most, fewDirect))
	} else {
		d.most = max(fewDirect, d.most/2)
	}
	return shown > warySince && 2*lost >= shown
}

// current are the instances of a key: those that were found directly if they are
// known, and beside them, if their loss is suspicious, those that the registry shows.
func (s *state) current(e *entry) []Instance {
	switch {
	case e.direct == nil:
		return e.instances
	case !s.directly.wary:
		return e.direct.instances
	}
	all := slices.Clone(e.direct.instances)
	for _, i := range e.instances {
		if !slices.ContainsFunc(e.direct.instances, func(o Instance) bool { return o.ID == i.ID }) {
			all = append(all, i)
		}
	}
	return all
}
