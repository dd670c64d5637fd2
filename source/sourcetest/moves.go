package sourcetest

import (
	"context"
	"time"

	"pgregory.net/rapid"
)

// step draws one event and makes it happen.
func (m *mirroring) step() {
	switch what := rapid.IntRange(0, 17).Draw(m.t, "what"); what {
	case 0, 1, 2, 3:
		m.set(m.content.redraw(m.t))
	case 4, 5:
		m.fail()
	case 6:
		m.restore()
	case 7, 8:
		m.guard.arm(rapid.SampledFrom(faults).Draw(m.t, "fault"))
	case 9:
		m.guard.refuse(rapid.IntRange(1, 5).Draw(m.t, "commits"), rapid.Bool().Draw(m.t, "after all"))
	case 10:
		m.guard.interrupt()
	case 11:
		if d, ok := m.registry.(Disconnecter); ok {
			m.note("connections break")
			d.Disconnect()
		}
	case 12:
		m.guard.poison(rapid.SampledFrom(mirrored).Draw(m.t, "poisoned"))
		m.guard.interrupt() // so that everything is listed
	case 13:
		m.release()
	case 14:
		m.stop()
		m.start()
	default:
	}
	m.pass(rapid.SampledFrom([]time.Duration{0, m.Lag / 20, m.Lag / 2, m.Lag, m.terms().Hold.For / 2}).Draw(m.t, "then"))
}

// set changes the content of the registry.
func (m *mirroring) set(s Services) {
	s = m.possible(s)
	m.guard.changes(s)
	m.registry.Set(s)
	m.guard.changed()
	for _, host := range mirrored {
		m.leewayOf(host).widen(s, host)
	}
	m.content = s
}

// possible returns drawn services as the registry accepts them.
func (m *mirroring) possible(s Services) Services {
	if m.Valid == nil {
		return s
	}
	all := Services{}
	for host, service := range s {
		service.Bad = service.Bad && !m.Valid(host)
		all[host] = service
	}
	return all
}

// heal makes every service valid.
func (m *mirroring) heal() {
	s := Services{}
	for host, service := range m.content {
		s[host] = Service{Endpoints: service.Endpoints}
	}
	m.set(s)
}

func (m *mirroring) fail() {
	way := rapid.IntRange(0, len(m.Faults)-1).Draw(m.t, "way")
	if m.failing {
		m.restore()
	}
	m.note("the registry fails: %s", m.Faults[way])
	m.registry.Fail(way)
	m.failing = true
	m.guard.fails(true)
}

func (m *mirroring) restore() {
	if m.failing {
		m.guard.fails(false)
		m.registry.Restore()
		m.failing = false
	}
}

// release lets an operator release all held records.
func (m *mirroring) release() {
	away := m.guard.refusing()
	n, err := m.process.super.Release(context.WithValue(m.ctx, byOperator{}, true))
	if n > 0 {
		m.note("an operator releases %d records", n)
		for _, l := range m.left {
			l.released = true
		}
	}
	if err != nil && !away {
		m.violated("release: %v", err)
	}
}
