package pushtest

import (
	"maps"
	"slices"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// ask requests a type, or more of one.
func (c *client) ask() {
	t := c.h.t
	m, r := c.h.drawType()
	s := c.types[m.producer.Type(r)]
	first := s == nil
	if first {
		s = c.begin(m, r, c.drawMode())
	}
	c.h.clock++
	var names []string
	for range rapid.IntRange(0, 3).Draw(t, "names") {
		names = append(names, m.Name(t, r))
	}
	everything := rapid.IntRange(0, 2).Draw(t, "everything") == 0 || first && len(names) == 0
	req := session.Request{Subscribe: names}
	if everything {
		req.Wildcard = session.WildcardOn
		if s.wildcard == 0 {
			s.wildcard = c.h.clock
			s.again++
			s.meet()
		}
	}
	if s.mode == world.WholeState {
		names = slices.DeleteFunc(names, func(name string) bool { return s.named[name] > 0 }) // the others are already requested
		slices.Sort(names)
		names = slices.Compact(names)
		req.Subscribe, req.Replace = nil, true
		req.Names = slices.Concat(slices.Sorted(maps.Keys(s.named)), names)
	}
	s.want(names, nil)
	if first {
		s.first = s.mode == world.WholeState || s.wildcard > 0
	}
	c.request(s, req)
}

// drawMode draws how the client takes a type.
func (c *client) drawMode() world.Mode {
	if c.who.Increments {
		return world.Delta
	}
	return rapid.SampledFrom([]world.Mode{world.Delta, world.WholeState}).Draw(c.h.t, "mode")
}

// follow asks for the resources that resources of a type bring, as clients do.
func (c *client) follow() {
	m, r := c.h.drawType()
	by := c.types[m.producer.Type(r)]
	if by == nil || m.Refers == nil {
		return
	}
	for row, spec := range m.Rows {
		if !slices.Contains(by.spec.Brings, spec.Name) {
			continue
		}
		if names := by.leadsTo(m.producer.Type(world.Row(row)), spec.Name); len(names) > 0 {
			c.askFor(m, world.Row(row), names)
		}
	}
}

// leadsTo lists the names that resources bring and that are not requested.
func (s *typed) leadsTo(t world.Type, typeName string) (names []string) {
	to := s.c.types[t]
	for _, x := range s.held {
		for _, name := range s.maker.Refers(s.row, x.Body, typeName) {
			if to == nil || to.named[name] == 0 {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// askFor requests names that are not requested yet.
func (c *client) askFor(m *maker, r world.Row, names []string) {
	s := c.types[m.producer.Type(r)]
	first := s == nil
	if first {
		s = c.begin(m, r, c.drawMode())
	}
	c.h.clock++
	req := session.Request{Subscribe: names}
	if s.mode == world.WholeState {
		req = session.Request{Replace: true, Names: slices.Concat(slices.Sorted(maps.Keys(s.named)), names)}
		if s.wildcard > 0 {
			req.Wildcard = session.WildcardOn
		}
	}
	s.want(names, nil)
	if first {
		s.first = s.mode == world.WholeState
	}
	c.request(s, req)
}

// unask ends a part or all of a client's requests of a type.
func (c *client) unask() {
	t := c.h.t
	list := c.sorted()
	if len(list) == 0 || c.busy {
		return
	}
	// Responses on their way are read first: later they would be taken for answers
	// to the next requests.
	if synctest.Wait(); !c.readAll() {
		return
	}
	s := rapid.SampledFrom(list).Draw(t, "of")
	c.h.clock++
	var req session.Request
	if s.wildcard > 0 && rapid.Bool().Draw(t, "everything") {
		req.Wildcard = session.WildcardOff
		s.wildcard = 0
	}
	var gone, left []string
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		if rapid.Bool().Draw(t, "drops") {
			gone = append(gone, name)
		} else {
			left = append(left, name)
		}
	}
	if s.mode == world.WholeState {
		req.Replace, req.Names = true, left
	} else {
		req.Unsubscribe = gone
	}
	s.drop(gone)
	c.request(s, req)
}

// drop records that names are no longer requested. The client forgets the names without a
// wildcard. For the others it may be sent the current version once more.
func (s *typed) drop(names []string) {
	s.again++
	s.loose = true
	for _, name := range names {
		delete(s.named, name)
		delete(s.denied, name)
		if s.repeats[name]++; !s.subscribed(name) {
			delete(s.repeats, name)
		}
	}
	other := func(name string) bool { return !s.subscribed(name) }
	s.cross()
	maps.DeleteFunc(s.held, func(name string, _ *thing) bool { return other(name) })
	maps.DeleteFunc(s.applied, func(name string, _ world.Version) bool { return other(name) })
	maps.DeleteFunc(s.uses, func(name string, _ []byte) bool { return other(name) })
	maps.DeleteFunc(s.owed, func(name string, _ bool) bool { return other(name) })
	s.dropped = true
}

// cross records the names of responses in flight that the client no longer asks for.
func (s *typed) cross() {
	if s.mode != world.Delta {
		return
	}
	maps.DeleteFunc(s.uncertain, func(name string, _ bool) bool { return !s.subscribed(name) })
	for _, f := range s.inflight {
		for _, e := range f.changed {
			if !s.subscribed(e.Name) {
				s.crossed[e.Name] = true
			}
		}
	}
}

// meet records the crossed names that the client requests again before it has answered. It
// may mistake the response in flight for the answer.
func (s *typed) meet() {
	for _, f := range s.inflight {
		for _, e := range f.changed {
			if s.crossed[e.Name] && s.subscribed(e.Name) && s.held[e.Name] == nil {
				s.uncertain[e.Name] = true
			}
		}
	}
}
