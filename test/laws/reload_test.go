package laws_test

import (
	"slices"
	"syscall"
)

// seat is a source that is there, wanted or not.
type seat struct {
	entry
	leaving bool
	halted  bool // it does not run: it was not configured when the process started
	going
}

func (p *play) seat(name string) *seat {
	if i := slices.IndexFunc(p.present, func(m *seat) bool { return m.Name == name }); i >= 0 {
		return p.present[i]
	}
	return nil
}

func (p *play) primed(name string) bool { m := p.mirrors[name]; return m != nil && m.primed }

// reload gives the application another configuration. Sources that are not in
// it leave once those that are new have been listed.
func (p *play) reload(wanted []entry) {
	p.settle()
	p.calm = p.calm && p.isGentle(wanted)
	for _, c := range p.clients {
		c.held = nil // it may be served first what is taken away then, rightly
	}
	p.reseat(wanted)
	p.former, p.wanted, p.process.loose = p.wanted, wanted, true
	p.process.hangup <- syscall.SIGHUP
	p.settle()
}

func (p *play) reseat(wanted []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names, fresh, present []string
	for _, e := range wanted {
		names = append(names, e.Name)
		if !slices.ContainsFunc(p.wanted, func(was entry) bool { return was.Name == e.Name }) {
			fresh = append(fresh, e.Name)
		}
	}
	for _, m := range p.present {
		present = append(present, m.Name)
		if m.leaving = !slices.Contains(names, m.Name); m.leaving {
			waits := slices.DeleteFunc(slices.Clone(m.waits), func(name string) bool { return !slices.Contains(names, name) })
			if waits = append(waits, fresh...); !slices.Equal(waits, m.waits) {
				m.going = going{waits: waits}
			}
		} else {
			m.going = going{}
		}
	}
	for _, e := range wanted {
		m := p.seat(e.Name)
		switch {
		case m == nil:
			p.mirrors[e.Name] = newMirror(e.Hold)
			m = &seat{}
			p.present = append(p.present, m)
		case m.Hold != e.Hold || m.Registry != e.Registry || m.halted:
			p.mirrors[e.Name].restart(e.Hold)
			m.halted = false
		}
		m.entry = e
	}
	order := orderWhile(present, names)
	slices.SortStableFunc(p.present, func(a, b *seat) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
}

// isOne reports whether a step leads to one commit at most, and is the only one
// since all was at rest: nothing that stays in view may flicker then.
func (p *play) isOne(s step) bool {
	readers := 0
	for _, m := range p.present {
		if m.Registry == s.Registry {
			readers++
		}
	}
	return readers < 2 && (p.at == 0 || p.script.Steps[p.at-1].Rest)
}

// isGentle reports whether another configuration takes effect in one step, or
// in steps that make no difference: at most one source goes, and who comes in
// its place says the same.
func (p *play) isGentle(wanted []entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var come, gone []entry
	for _, e := range wanted {
		switch m := p.seat(e.Name); {
		case m == nil:
			come = append(come, e)
		case m.Hold != e.Hold || m.Registry != e.Registry || m.halted:
			return false
		}
	}
	for _, m := range p.present {
		if !slices.ContainsFunc(wanted, func(e entry) bool { return e.Name == m.Name }) {
			gone = append(gone, m.entry)
		}
	}
	if len(come) == 0 || len(gone) != 1 || len(come) != 1 {
		return len(come) == 0 && len(gone) < 2
	}
	m, r := p.mirrors[gone[0].Name], p.registries[come[0].Registry]
	return m.primed && r.mode == up && len(r.faults) == 0 && slices.Equal(m.lines(), r.mirror(m.hold).lines())
}

// renamed is the configuration with another name for one source.
func (p *play) renamed(which int) []entry {
	wanted := slices.Clone(p.wanted)
	for _, name := range []string{"a", "b", "c", "d"} {
		if p.seat(name) == nil {
			wanted[which%len(wanted)].Name = name
			break
		}
	}
	return wanted
}

// rotated is the configuration in another order.
func (p *play) rotated(which int) []entry {
	n := which % len(p.wanted)
	return slices.Concat(p.wanted[n:], p.wanted[:n])
}

// orderWhile is the order of sources while those that nobody wants any more are still
// there: each follows the source that it followed before.
func orderWhile(present, wanted []string) (order []string) {
	rest := slices.Clone(wanted)
	for i, name := range present {
		if slices.Contains(wanted, name) {
			continue
		}
		if i == 0 {
			rest = append([]string{name}, rest...)
			continue
		}
		after := slices.Index(rest, present[i-1])
		rest = append(rest[:after+1:after+1], append([]string{name}, rest[after+1:]...)...)
	}
	return rest
}
