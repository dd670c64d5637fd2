package session

import "github.com/isthmus-mesh/isthmus/push/world"

// switchMode makes a client take a type in another mode from now on. All names that it holds
// or asks for are considered again: the changes that a debounce delays are those of the
// other mode.
func switchMode(s *State, to world.Mode, nacked bool) {
	if s.mode == to {
		return
	}
	s.mode = to
	if full := s.spec.Whole && to == world.WholeState; full != s.full {
		if s.full = full; full {
			beginWhole(s, nacked)
		} else {
			beginDelta(s)
		}
	}
	s.expand = s.wildcard
	for h := range s.held.All {
		s.want(h.Name, Pending{})
	}
}

// beginWhole makes the next response the full set. NACKed names are in it in their current
// form, because which of them was at fault is unknown. After a NACK the set is due at once:
// the client asked for it instead of increments.
func beginWhole(s *State, nacked bool) {
	for name, n := range s.forgiveAll() {
		s.stir(name)
		if n.member == (world.Member{}) && s.holding(name) == nil {
			s.suspect(name) // its removal was NACKed
		}
	}
	s.claim = Unknown()
	s.open.due, s.open.asked = s.open.due || nacked, s.open.asked || nacked
}

// beginDelta makes the next responses bring the difference from the held resources.
func beginDelta(s *State) {
	unsend(s)
	s.claim, s.guard, s.record.withheld = nil, false, withheld{}
	for h := range s.held.All {
		if h.Whole != nil {
			h.Label = h.Whole.Shared
		}
	}
	for name, n := range s.nacked {
		if h := s.holding(name); h != nil && h.Member == n.member {
			s.unsettle(h) // the set that brought it was NACKed
		}
		n.group = max(n.group, 1) // alone the resource may be valid
		s.nacked[name] = n
	}
	s.retry()
}

// unsend reverts the changes of a full set that was not sent.
func unsend(s *State) {
	if s.open.serial == 0 {
		return
	}
	var unsent []string
	for h := range s.held.All {
		if s.opened(h) {
			unsent = append(unsent, h.Name)
		}
	}
	for _, name := range unsent {
		if s.record.sentAt.IsZero() {
			s.release(name)
			s.want(name, Pending{})
		} else {
			s.unsettle(s.holding(name)) // the client may have an earlier version
		}
	}
	for name, serial := range s.removed {
		if serial != s.open.serial {
			continue
		}
		if delete(s.removed, name); s.holding(name) == nil && !s.record.sentAt.IsZero() {
			s.suspect(name)
		}
	}
	s.open.behind.rouse(s.roused)
	s.open = opening{due: s.open.due}
}
