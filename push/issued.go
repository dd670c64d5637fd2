package push

import "sync"

// mostIssued bounds the remembered versions. A forgotten version counts as foreign, so its
// client is answered later.
const mostIssued = 1 << 16

// issued are the newest versions sent to [WholeState] subscribers. A client that comes back
// with one of them was served here. A resource that no longer exists was therefore removed
// here as well, and no unlisted source has it.
type issued struct {
	mu    sync.Mutex
	has   map[Version]struct{}
	order []Version // a ring once it is full
	next  int
}

func (m *issued) add(v Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.has[v]; known {
		return
	}
	if m.has == nil {
		m.has = map[Version]struct{}{}
	}
	m.has[v] = struct{}{}
	if len(m.order) < mostIssued {
		m.order = append(m.order, v)
		return
	}
	delete(m.has, m.order[m.next])
	m.order[m.next] = v
	m.next = (m.next + 1) % mostIssued
}

func (m *issued) knows(v *Version) bool {
	if v == nil || *v == (Version{}) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.has[*v]
	return known
}
