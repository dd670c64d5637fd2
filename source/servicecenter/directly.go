package servicecenter

import (
	"cmp"
	"slices"
)

// warySince is the number of instances above which the loss of most of them is
// suspicious. The registry's self-protection has the same bound.
const warySince = 5

// asksDirect returns the keys to find directly. First come keys that differ or have
// just changed, the one found longest ago first; then others in turn. The group with
// more changes in recent finds gets three quarters.
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

// newest returns the newest known revision of a key.
func (e *entry) newest() string {
	if e.direct != nil {
		return e.direct.rev
	}
	return e.rev
}

// answerDirect takes the answers of direct finds, and reports whether they begin to
// be suspicious.
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

// average returns a moving average of a share, the latest counting most.
func average(share float64, n, all int) float64 {
	if all == 0 {
		return share
	}
	return (share + float64(n)/float64(all)) / 2
}

// takeDirect takes one answer, and reports whether the answer differs. Failed or
// nonsensical answers are ignored: the cached finds remain.
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

// lacksMost reports whether direct finds lack most of the instances in the registry's
// cache. It also raises the number of keys in the next round if any of them differs.
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

// current returns the instances of a key: the directly found ones if they are known.
// If their loss is suspicious, the cached instances are added.
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
