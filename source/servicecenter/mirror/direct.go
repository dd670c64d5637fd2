package mirror

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// The registry's cache shows changes only when none has come for a moment. Under
// steady change its finds are tens of seconds old. Without its cache it reads its
// backend, which costs it more than twenty times as much. So each round finds some
// services directly: recently changed ones, and a few of the others in turn. The more
// of these differ from the cache, the more are found directly in the next round.
const (
	// fewDirect is the number of direct finds while nothing differs.
	fewDirect = 16
	// directShare is the divisor of poll that gives a round's time with direct finds:
	// the rest after it is no longer than poll.
	directShare = RestAfter
	// directLeast is the divisor of poll that gives the least time for direct finds,
	// in a round that is already longer.
	directLeast = 16
	// suspiciousAbove is the number of instances above which the loss of most of them
	// is suspicious. The registry's self-protection has the same bound.
	suspiciousAbove = 5
)

// RestAfter is how many times as long the registry rests as it was busy.
const RestAfter = 4

// directRest is how long there is no direct find after a failed one.
var directRest = wait.Backoff{Min: 4 * time.Second, Max: time.Minute}

// direct is the answer of a direct find for a key, if it differs from the registry's
// cache.
type direct struct {
	rev       string
	instances []registry.Instance
}

// directFinds limits direct finds.
type directFinds struct {
	most     int           // keys in the next round
	at       registry.Key  // the last key found in turn
	turn     uint64        // counts direct finds
	cost     time.Duration // of one key; zero while unknown
	due      time.Time     // before which there are none, after a failure
	lost     int           // failures in a row
	cautious bool          // missing instances do not count as gone

	hot          int     // how many of the last direct finds had changed recently
	fresh, turns float64 // recent share of finds with changes, for recently changed keys and for others
}

// limit returns how many keys a round may find directly, after it has kept the
// registry busy for some time already.
func (d *directFinds) limit(poll, busy time.Duration) int {
	most := max(d.most, fewDirect)
	if d.cost > 0 {
		most = min(most, int(max(poll/directShare-busy, poll/directLeast)/d.cost))
	}
	return max(1, most)
}

// failed notes a failed find of some keys.
func (d *directFinds) failed(took time.Duration, keys int, now time.Time) {
	d.lost++
	d.most, d.due = fewDirect, now.Add(directRest.After(d.lost, rand.Float64()))
	d.spent(took, keys)
}

// succeeded notes an answered find of some keys.
func (d *directFinds) succeeded(took time.Duration, keys int) {
	d.lost = 0
	d.spent(took, keys)
}

// spent updates the cost of a key by a find, the latest counting most.
func (d *directFinds) spent(took time.Duration, keys int) {
	cost := took / time.Duration(keys)
	if d.cost > 0 {
		cost = (d.cost + cost) / 2
	}
	d.cost = max(cost, time.Microsecond)
}

// asksDirect returns the keys to find directly. First come keys that differ or have
// just changed, the one found longest ago first; then others in turn. The group with
// more changes in recent finds gets three quarters.
func (s *finds) asksDirect(most int) []registry.Ask {
	d := &s.direct
	var hot []registry.Key
	for _, k := range s.keys {
		if e := s.entries[k]; e.known && (e.direct != nil || e.changed) {
			hot = append(hot, k)
		}
	}
	slices.SortStableFunc(hot, func(a, b registry.Key) int { return cmp.Compare(s.entries[a].turn, s.entries[b].turn) })
	d.turn++
	asks := make([]registry.Ask, 0, most)
	take := func(k registry.Key) {
		if e := s.entries[k]; e.known && e.turn != d.turn {
			e.turn, e.changed = d.turn, false
			asks = append(asks, registry.Ask{Key: k, Rev: e.newest()})
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
	begin, _ := slices.BinarySearchFunc(s.keys, d.at, registry.Key.Compare)
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

// answerDirect takes the answers of direct finds. It returns the changed keys, and
// whether the answers begin to be suspicious.
func (s *finds) answerDirect(asked []registry.Ask, found []registry.Found) (touched []registry.Key, begins bool) {
	d, changed := &s.direct, [2]int{}
	for n, a := range asked {
		if e := s.entries[a.Key]; e != nil && s.takeDirect(a, e, found[n]) {
			touched = append(touched, a.Key)
			if n < d.hot {
				changed[0]++
			} else {
				changed[1]++
			}
		}
	}
	d.fresh = average(d.fresh, changed[0], d.hot)
	d.turns = average(d.turns, changed[1], len(asked)-d.hot)
	cautious := s.lacksMost()
	begins = cautious && !d.cautious
	if cautious != d.cautious {
		d.cautious = cautious
		for k, e := range s.entries {
			if e.direct != nil {
				touched = append(touched, k)
			}
		}
	}
	return touched, begins
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
func (s *finds) takeDirect(a registry.Ask, e *entry, f registry.Found) bool {
	if _, foreign := s.foreign(a.Key, f.Instances); f.Err != nil || f.Same || foreign {
		return false
	}
	if f.Rev == e.rev {
		e.direct = nil
	} else {
		e.direct = &direct{f.Rev, f.Instances}
	}
	return true
}

// lacksMost reports whether direct finds lack most of the instances in the registry's
// cache. It also raises the number of keys in the next round if any of them differs.
func (s *finds) lacksMost() bool {
	d, late, shown, lost := &s.direct, 0, 0, 0
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
		d.most = min(registry.MostKeys, 2*max(d.most, fewDirect))
	} else {
		d.most = max(fewDirect, d.most/2)
	}
	return shown > suspiciousAbove && 2*lost >= shown
}
