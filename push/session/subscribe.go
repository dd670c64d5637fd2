package session

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Claims applies the version that a client claims on its first request. Ours reports that
// it was issued here.
func (s *State) Claims(v *world.Version, ours bool) { s.claim, s.ours = v, ours }

// Resume applies the versions that a client lists on its first request. Those of a type
// with increments do not count.
func (s *State) Resume(held map[string]world.Version, now time.Time) {
	s.resumes = true
	for name, version := range held {
		s.resume(name, version, now)
	}
	s.wantAll(batch{names: slices.Collect(maps.Keys(held))})
}

// Begun ends the first request. An empty first response tells a client that there is
// nothing to wait for. A client that resumes is not waiting.
func (s *State) Begun(r *Request) {
	s.first = s.mode == world.Delta && r.MarkFirst
	s.answer = s.mode == world.WholeState || s.wildcard && len(r.Held) == 0 || r.Confirm
}

// Replaces returns the names that a full list of names adds and drops.
func (s *State) Replaces(names []string) (added, dropped []string) {
	wanted := make(map[string]struct{}, len(names))
	for _, name := range names {
		if _, twice := wanted[name]; !twice && !s.named(name) {
			added = append(added, name)
		}
		wanted[name] = struct{}{}
	}
	for name := range s.allNamed {
		if _, ok := wanted[name]; !ok {
			dropped = append(dropped, name)
		}
	}
	return added, dropped
}

// SetListed records the digest of a full list of names.
func (s *State) SetListed(digest uint64) { s.listed = digest }

// Lacks returns the names that the client does not ask for yet.
func (s *State) Lacks(names []string) []string { return without(names, s.named) }

// Subscribe asks for names, of which the added ones are not asked for yet. It returns added
// names that were there twice.
func (s *State) Subscribe(names, added []string, first bool) (twice []string) {
	s.ours = s.ours && (s.asked == 0 || len(added) == 0) // names requested later are not covered by the claim
	for _, name := range added {
		if !s.ask(name) {
			twice = append(twice, name)
		}
		s.meet(name)
	}
	if first { // held names are considered in any case
		names = without(names, func(name string) bool { return s.holding(name) != nil })
	}
	s.wantAll(batch{names: names, again: true})
	return twice
}

// Unsubscribe stops asking for names, and returns those that were asked for.
func (s *State) Unsubscribe(names []string) (dropped []string) {
	for _, name := range names {
		if s.named(name) {
			s.drop(name)
			dropped = append(dropped, name)
		}
	}
	for _, name := range dropped {
		delete(s.unproven, name)
		if s.wildcard {
			// The client has to learn whether the wildcard still includes it.
			s.want(name, Pending{force: s.mode == world.Delta})
			continue
		}
		s.forget(name)
	}
	return dropped
}

// SetWildcard applies a request's wildcard, and reports whether it began or ended.
func (s *State) SetWildcard(w Wildcard, overtaken bool) (changed bool) {
	switch {
	case w == WildcardOn && overtaken:
		// As with names, the answer to the response will repeat it.
	case w == WildcardOn && !s.wildcard:
		s.wildcard, s.expand = true, true
		for name := range s.crossed {
			s.meet(name)
		}
		return true
	case w == WildcardOn && s.mode == world.Delta:
		s.expand = true // asked again: a comparison finds the names that it lacks
	case w == WildcardOff && s.wildcard:
		s.wildcard, s.expand = false, false
		s.forgetUnsubscribed()
		return true
	}
	return false
}

// meet makes a name pending that is requested again before a response with it was answered.
// The client may have an outdated version from that response.
func (s *State) meet(name string) {
	if _, crossed := s.crossed[name]; !crossed || s.holding(name) != nil {
		return
	}
	delete(s.crossed, name)
	s.suspect(name)
	s.want(name, Pending{})
}

// forget drops the state of a name that is no longer subscribed. If the name is requested
// again, it is sent again.
func (s *State) forget(name string) {
	if h := s.holding(name); h != nil && s.mode == world.Delta {
		s.cross(name, h)
	}
	s.release(name)
	delete(s.removed, name)
	s.clearNACK(name)
	s.dismiss(name)
	s.unalter(name)
}

// forgetUnsubscribed forgets every unsubscribed name, after the wildcard has ended.
func (s *State) forgetUnsubscribed() {
	var gone []string
	for h := range s.held.All {
		gone = append(gone, h.Name)
	}
	gone = slices.AppendSeq(gone, maps.Keys(s.pending))
	gone = slices.AppendSeq(gone, maps.Keys(s.waits.names))
	gone = slices.AppendSeq(gone, maps.Keys(s.removed))
	gone = slices.AppendSeq(gone, maps.Keys(s.unproven))
	gone = slices.AppendSeq(gone, maps.Keys(s.nacked))
	for _, name := range gone {
		if !s.subscribed(name) {
			s.forget(name)
		}
	}
}

// without returns the names for which no returns false. The list is not written to.
func without(names []string, no func(string) bool) []string {
	if !slices.ContainsFunc(names, no) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), no)
}
