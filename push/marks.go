package push

import "sync"

// marks are the names that changed since they were last taken. They have a lock of their
// own, so that marking never waits for an assembly.
type marks struct {
	mu     sync.Mutex
	names  map[string]pending
	urgent bool // some name is urgent
	// blocked is set while the next response has to wait: a look at the names is useless until
	// then. It is set under the subscriber's lock only.
	blocked bool
}

// tooMany is the number of marks above which even a blocked type gets a turn. The turn
// drops the names that came and went meanwhile.
const tooMany = 1024

// mark records that a name may have changed, and reports whether the subscriber needs a
// turn for it.
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
	if len(i.pending) == 0 && !i.crowded && len(names) <= few && len(i.waits.names) == 0 && len(i.behind) == 0 { // the usual case: the two maps swap
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

// block records whether the next response has to wait for an answer. Until then, marks
// request no turn: a client that is slow or stuck costs a mark for each change, and no
// worker.
func (i *interest) block() {
	i.marks.mu.Lock()
	defer i.marks.mu.Unlock()
	i.marks.blocked = i.blocks()
}

// unblock ends the block. It reports whether a name was marked meanwhile, and whether any
// marked name is urgent.
func (i *interest) unblock() (turn, urgent bool) {
	i.marks.mu.Lock()
	defer i.marks.mu.Unlock()
	i.marks.blocked = false
	return len(i.marks.names) > 0, i.marks.urgent
}

// markedBeside counts the marked names that are neither pending nor waiting.
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
