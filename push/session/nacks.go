package session

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// nack is a name that came in a NACKed response. If the response had other names, neither
// the one at fault nor the ones that the client applied are known. They are retried at
// once, in ever smaller groups, until the resource at fault is alone in its response. Then
// it is not sent again until it changes.
type nack struct {
	member world.Member // as it was NACKed; zero for a removal
	group  int          // size of the group for the next retry; 0 if the name alone is at fault
	again  bool         // a retry is due
	// at and reason are for display only.
	at     time.Time
	reason string
}

// nacks are the names of a type for which the newest response was NACKed.
type nacks struct {
	nacked  map[string]nack
	again   int  // number of them to be retried
	retried bool // the previous response retried some of them
	// otherwise is set when an exclusive type got an ACK after the last retry of the names
	// NACKed alone.
	otherwise bool
}

// mostRetried bounds the NACKed removals of a wildcard's names that are retried.
const mostRetried = 1024

func (s *nacks) note(name string, n nack) {
	if s.nacked == nil {
		s.nacked = map[string]nack{}
	}
	if s.nacked[name].again {
		s.again--
	}
	s.nacked[name] = n
}

// nackedAs reports whether a name was NACKed with this very content. To send the content
// again would be useless.
func (s *nacks) nackedAs(name string, m world.Member) bool {
	n, was := s.nacked[name]
	return was && n.member == m
}

// due makes a name due for a retry.
func (s *nacks) due(name string, n nack) {
	n.again = true
	s.again++
	s.nacked[name] = n
}

// retryGroups makes the NACKed names due for a retry, except names that were NACKed alone.
// It returns the names that were not due before.
func (s *nacks) retryGroups() (due []string) {
	for name, n := range s.nacked {
		if n.group > 0 && !n.again {
			s.due(name, n)
			due = append(due, name)
		}
	}
	return due
}

// retryAlone makes the names due that were NACKed alone, once no NACKed group is left, and
// returns them. The client's other resources, which may have been the reason, are different
// by now. They are first retried together, because some may be valid only with each other.
// Each attempt requires an ACK of another resource, so the retries end.
func (s *nacks) retryAlone() (due []string) {
	if !s.otherwise || s.again > 0 {
		return nil
	}
	s.otherwise = false
	for name, n := range s.nacked {
		if n.group == 0 {
			due = append(due, name)
		}
	}
	for _, name := range due {
		n := s.nacked[name]
		n.group = len(due)
		s.due(name, n)
	}
	return due
}

// nextGroup takes at most so many names that are tried again in the next response: the
// largest group there is, because most good resources are in it. Nothing else goes with it,
// so that a resource which changes all the time is not NACKed with the group. Other pending
// names have every other response.
func (s *nacks) nextGroup(others bool, most int) (names []string) {
	if s.again == 0 || s.retried && others {
		s.retried = false
		return nil
	}
	s.retried = true
	group := 0
	for _, n := range s.nacked {
		if n.again {
			group = max(group, n.group)
		}
	}
	for name, n := range s.nacked {
		if n.again && n.group == group {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), group, most)]
	for _, name := range names {
		n := s.nacked[name]
		n.again = false
		s.again--
		s.nacked[name] = n
	}
	return names
}

// miss records that a name could not be retried, after a panic. The next look sends its
// then current content.
func (s *nacks) miss(name string) {
	if n := s.nacked[name]; n.group > 0 {
		n.member = world.MemberOf(name, world.Version{})
		s.nacked[name] = n
	}
}

// forgive forgets that a name was NACKed, and reports whether it was.
func (s *nacks) forgive(name string) bool {
	n, was := s.nacked[name]
	if n.again {
		s.again--
	}
	delete(s.nacked, name)
	return was
}

// forgiveAll forgets that any name was NACKed.
func (s *nacks) forgiveAll() (names map[string]nack) {
	names = s.nacked
	s.nacked, s.again, s.retried = nil, 0, false
	return names
}
