package push

import "sync"

// marks are the names that changed since they were last taken. They have a lock of
// their own, so that marking never waits for an assembly.
type marks struct {
	mu     sync.Mutex
	names  map[string]pending
	urgent bool // one of them is
	// blocked is set while the next response has to wait, so that looking at the
	// names is of no use yet. It is set under the subscriber's lock only.
	blocked bool
}

// tooMany is the number of marks above which even a blocked type has a turn, which
// drops the names that came and went meanwhile.
const tooMany = 1024

// mark notes that a name may have changed, and reports whether the subscriber needs
// a turn for it.
func (i *interest) mark(name string, p pending) bool {
	m := &i.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[string]pending{}
	}
	if was, ok := m.names[name]; ok {
		p = was.and(p)
	}
	m.names[name] = p
	m.urgent = m.urgent || p.urgent
	return !m.blocked || len(m.names) > tooMany
}

// takeMarks moves the marked names to the pending ones.
func (i *interest) takeMarks() {
	m := &i.marks
	m.mu.Lock()
	names := m.names
	m.urgent = false
	if len(names) == 0 {
		m.mu.Unlock()
		return
	}
	if len(i.pending) == 0 && !i.crowded && len(names) <= few && len(i.waits.names) == 0 && len(i.behind) == 0 { // as nearly always: the two change places
		i.urgent = false
		for _, p := range names {
			i.urgent = i.urgent || p.urgent
		}
		i.pending, m.names = names, i.pending
		m.mu.Unlock()
		return
	}
	m.names = nil
	m.mu.Unlock()
	for name, p := range names {
		i.want(name, p)
	}
	i.trim()
}

// block notes whether the next response has to wait for an answer. While it does,
// marks ask for no turn: a client that is slow or stuck costs a mark for each
// change, and no worker.
func (i *interest) block() {
	i.marks.mu.Lock()
	defer i.marks.mu.Unlock()
	i.marks.blocked = i.blocks()
}

// unblock undoes that. It reports whether something was marked meanwhile, and
// whether any of it is urgent.
func (i *interest) unblock() (turn, urgent bool) {
	i.marks.mu.Lock()
	defer i.marks.mu.Unlock()
	i.marks.blocked = false
	return len(i.marks.names) > 0, i.marks.urgent
}

// markedBeside counts the marked names that are not to be looked at anyway.
func (i *interest) markedBeside() (n int) {
	i.marks.mu.Lock()
	defer i.marks.mu.Unlock()
	for name := range i.marks.names {
		if _, ok := i.coming(name); !ok {
			n++
		}
	}
	return n
}
