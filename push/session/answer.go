package session

import "time"

// Answered is the effect of an answer.
type Answered struct {
	ACKed, NACKed bool
	Since         time.Time // commit of the oldest change in the ACKed response; zero if unknown
}

// Answer applies the answer to a response.
func (s *State) Answer(a Answer, now time.Time) (o Answered) {
	defer s.retryAlone()
	if o.NACKed = a.Kind == NACK && s.noteNACK(a.Serial, a.Reason, now); o.NACKed {
		s.record.nack(now, a.Reason)
		s.record.unnamed = len(s.nacked) == 0
	}
	r := s.land(a.Serial)
	if r == nil {
		return o
	}
	r.behind.rouse(s.roused)
	s.settle(r.step)
	if a.Kind == NACK {
		return o
	}
	if s.full { // the whole set was ACKed
		s.clearNACKs()
	}
	s.otherwise = s.otherwise || s.spec.Exclusive && r.brought > 0
	s.record.ack(now, r.version)
	o.ACKed, o.Since = true, r.since
	return o
}

// noteNACK records the names that a NACK puts in question: the names of the response that
// no later one brought anew. It reports whether the response was awaited.
func (s *State) noteNACK(by uint64, reason string, now time.Time) bool {
	if by <= s.landed {
		return false
	}
	s.open.firm()
	at := s.index(by)
	var r unanswered // stays zero for a response too old to be remembered
	if at >= 0 {
		r = *s.unanswered[at]
	}
	group := 0
	if r.brought != 1 {
		group = max(1, (r.brought+1)/2)
	}
	n := nack{group: group, at: now, reason: reason}
	left := s.noteHeld(by, n) + s.noteRemoved(by, n)
	newer := at >= 0 && at == len(s.unanswered)-1 && r.version != s.sum // a newer response is in flight, and its answer decides
	if s.full && newer || !s.full && left > 0 {
		s.retry()
	}
	return at >= 0 || left > 0
}

// noteHeld records the NACKed resources of a response, and returns their number.
func (s *State) noteHeld(by uint64, n nack) (count int) {
	for h := range s.held.All {
		if h.serial != serialOf(by) {
			continue
		}
		count++
		n.member = h.Member
		s.note(h.Name, n)
		if s.full {
			h.serial = 0
		} else {
			s.unsettle(h)
		}
	}
	return count
}

// noteRemoved records the NACKed removals of a response, and returns their number. A removal
// that came with others is retried, because the client may have applied nothing of the
// response. Names that only a wildcard asks for have no bound. So the client keeps such a
// name if it NACKed the removal alone, or if too many others are on record. A kept resource
// of an exclusive type may conflict with others, so its removal is retried in any case.
func (s *State) noteRemoved(by uint64, n nack) (count int) {
	for name, serial := range s.removed {
		if serial != by {
			continue
		}
		count++
		delete(s.removed, name)
		if s.named(name) || (n.group > 0 || s.full || s.spec.Exclusive) && len(s.nacked) < mostRetried {
			s.note(name, n)
		}
	}
	return count
}

// retry makes the NACKed names due for a retry, except names that were NACKed alone.
func (s *State) retry() {
	if s.full {
		for name := range s.nacked { // part of the set in any case
			s.want(name, Pending{force: true})
		}
		return
	}
	for _, name := range s.retryGroups() {
		s.stir(name)
	}
}

func (s *State) retryAlone() {
	for _, name := range s.nacks.retryAlone() {
		s.stir(name)
	}
}

// retryGroup makes the names pending that are tried again in the next response, and returns
// them.
func (s *State) retryGroup(most int) []string {
	names := s.nextGroup(s.waiting() > 0, most)
	for _, name := range names {
		s.want(name, Pending{force: true})
	}
	return names
}

// clearNACK forgets that a name was NACKed, once its content has changed. A full set with
// the name may be valid now, so the set is retried, unless the answer to a newer one decides.
func (s *State) clearNACK(name string) {
	if !s.forgive(name) {
		return
	}
	s.stir(name)
	if s.full && !s.Blocks() {
		s.retry()
	} else if name == s.record.withheld.name {
		s.record.withheld = withheld{}
	}
}

// dropNACK forgets that a name was NACKed, without another retry.
func (s *State) dropNACK(name string) {
	s.forgive(name)
	s.stir(name)
}

// clearNACKs forgets that any name was NACKed.
func (s *State) clearNACKs() {
	for name := range s.forgiveAll() {
		s.stir(name)
	}
}

// withhold records why a due resource or set is not sent.
func (s *State) withhold(name, reason string, now time.Time) {
	s.record.withheld = withheld{now, name, reason}
	s.warnings = append(s.warnings, reason)
}

// Sent records that the transport has taken a response, and reports whether its answer is
// awaited.
func (s *State) Sent(by uint64, now time.Time) bool {
	r := s.newest()
	if r == nil || r.serial != by {
		return false
	}
	r.sentAt = now
	return true
}

// GiveUp stops waiting for an answer that is overdue. It returns the time until the newest
// response is overdue, and 0 if none will be.
func (s *State) GiveUp(patience time.Duration, now time.Time) (left time.Duration, gaveUp bool) {
	r := s.newest()
	if r == nil || r.overdue || r.sentAt.IsZero() {
		return 0, false
	}
	if left := patience - now.Sub(r.sentAt); left > 0 {
		return left, false
	}
	r.overdue = true
	r.behind.rouse(s.roused)
	s.settle(r.step)
	return 0, true
}
