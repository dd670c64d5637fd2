package world

import "sync"

// mostIssued bounds the remembered versions. A forgotten version counts as foreign, so its
// client is answered later.
const mostIssued = 1 << 16

// Issued remembers the newest versions that [WholeState] subscribers were sent, or the names.
// A subscriber that returns with such a version was served here. A name that was sent here and
// is absent now was removed from the subscriber here as well, whatever source was never listed.
// A version of a type that is sent name by name says nothing of names that were never sent.
type Issued struct {
	mu    sync.Mutex
	has   map[Version]struct{}
	order []Version // a ring once it is full
	next  int
}

// Add remembers a version.
func (m *Issued) Add(v Version) {
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

// Knows reports whether a version is remembered.
func (m *Issued) Knows(v *Version) bool {
	if v == nil || *v == (Version{}) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.has[*v]
	return known
}
