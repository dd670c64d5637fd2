package push

import (
	"sync"

	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/session"
)

// interest is one subscriber's interest in one type.
type interest struct {
	index.Entry[*interest]
	subscriber *Subscriber
	marks      marks
	state      *session.State // guarded by the subscriber's lock

	// Only the dispatcher uses the following fields.
	reviewed uint64 // number of the comparison of its view before a step
	moved    bool   // whether the view differed in that comparison
}

// marks are the names that changed since they were last taken. They have a lock of their
// own, so that to mark a name never waits for an assembly.
type marks struct {
	mu     sync.Mutex
	names  map[string]session.Pending
	urgent bool // some name is urgent
	// blocked is set while the next response has to wait: a look at the names is useless until
	// then. It is set under the subscriber's lock only.
	blocked bool
}

// tooMany is the number of marks above which even a blocked type gets a turn. The turn
// drops the names that came and went meanwhile.
const tooMany = 1024

// add records that a name may have changed, and reports whether the subscriber needs a turn
// for it.
func (m *marks) add(name string, p session.Pending) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[string]session.Pending{}
	}
	if was, ok := m.names[name]; ok {
		p = was.And(p)
	}
	m.names[name] = p
	m.urgent = m.urgent || p.Urgent
	return !m.blocked || len(m.names) > tooMany
}

// move makes the marked names pending.
func (m *marks) move(to *session.State) {
	m.mu.Lock()
	names := m.names
	m.urgent = false
	if len(names) == 0 {
		m.mu.Unlock()
		return
	}
	spare, ok := to.Swap(names) // the usual case
	m.names = spare
	m.mu.Unlock()
	if !ok {
		to.Mark(names)
	}
}

// block records whether the next response has to wait for an answer. Until then, marks
// request no turn: a client that is slow or stuck costs a mark for each change, and no
// worker.
func (m *marks) block(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocked = on
}

// unblock ends the block. It reports whether a name was marked meanwhile, and whether any
// marked name is urgent.
func (m *marks) unblock() (turn, urgent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocked = false
	return len(m.names) > 0, m.urgent
}

// beside counts the marked names that a state does not consider yet.
func (m *marks) beside(s *session.State) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.names {
		if !s.Considers(name) {
			n++
		}
	}
	return n
}
