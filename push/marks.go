package push

import (
	"sync"
	"sync/atomic"
)

// marks are the names that changed since they were last taken. Their lock is
// apart from the subscriber's: whoever marks never waits for an assembly.
type marks struct {
	mu      sync.Mutex
	types   []marked
	recheck atomic.Bool // names that were not found are now known not to exist
	review  atomic.Bool // the client may see something else now
}

// marked are the names of one type.
type marked struct {
	names  map[string]pending // nil if none
	urgent bool               // one of them is
	// blocked is set while the next response has to wait, so that to look at
	// the names is of no use yet. Only who holds the subscriber's lock sets it.
	blocked bool
}

// tooMany marks of a type that is blocked are looked through all the same: for
// names that came and went meanwhile nobody has to remember anything.
const tooMany = 1024

// mark notes that a name may have changed. It reports whether that is reason
// enough for a turn.
func (s *Subscriber) mark(t Type, name string, p pending) bool {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	m := &s.marks.types[t]
	if m.names == nil {
		m.names = map[string]pending{}
	}
	m.names[name] = m.names[name].and(p)
	m.urgent = m.urgent || p.urgent
	return !m.blocked || len(m.names) > tooMany
}

func (s *Subscriber) recheck() { s.marks.recheck.Store(true) }

// takeMarks moves the marked names to the subscriber's own state.
func (s *Subscriber) takeMarks() {
	recheck := s.marks.recheck.Swap(false)
	for t := range s.types {
		st := &s.types[t]
		for name, p := range s.takeMarked(t) {
			st.want(name, p)
		}
		st.thin()
		if recheck {
			for name := range st.unproven {
				_, held := st.held[name] // else the client waits for an answer
				st.want(name, pending{force: !held})
			}
			clear(st.unproven)
		}
	}
}

func (s *Subscriber) takeMarked(t int) map[string]pending {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	m := &s.marks.types[t]
	names := m.names
	m.names, m.urgent = nil, false
	return names
}

// block notes for which types marks are no reason for a turn, because their
// next response has to wait for an answer in any case: a client that is slow,
// or stuck, costs a mark for each change and no worker.
func (s *Subscriber) block() {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	for t := range s.types {
		s.marks.types[t].blocked = s.types[t].blocks()
	}
}

// unblock undoes that for a type, and tells what was marked meanwhile.
func (s *Subscriber) unblock(t Type) (turn, urgent bool) {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	m := &s.marks.types[t]
	m.blocked = false
	return len(m.names) > 0, m.urgent
}

// markedBeside counts the marked names that are not pending anyway.
func (s *Subscriber) markedBeside(t int) (n int) {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	for name := range s.marks.types[t].names {
		if _, ok := s.types[t].pending[name]; !ok {
			n++
		}
	}
	return n
}
