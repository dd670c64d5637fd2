package pushtest

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// check checks a client's resources once everything is at rest.
func (c *client) check() {
	if c.busy {
		return
	}
	for _, s := range c.sorted() {
		if s.maker.published > 0 {
			s.check()
		}
	}
	for _, s := range c.sorted() {
		s.settle()
	}
	for t, all := range c.views {
		c.views[t] = slices.Clone(all[max(0, len(all)-1):])
	}
}

func (s *typed) check() {
	if s.guarded() {
		return
	}
	v := s.now()
	for _, name := range slices.Sorted(maps.Keys(v.names)) {
		if s.subscribed(name) && v.unclear[name] == 0 && !s.heldBack(v.names[name], 0) {
			s.checkPresent(v.names[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.held)) {
		if _, there := v.names[name]; !there && v.unclear[name] == 0 {
			s.checkAbsent(s.held[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		if _, there := v.names[name]; !there && s.held[name] == nil {
			s.checkAnswer(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.uncertain)) {
		if _, there := v.names[name]; !there && !s.wasUnclear(name) && !s.c.silent && !s.c.guarded() {
			s.violated(lost, "%s was on its way when the client ceased to ask for it, and is gone, and was not removed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.owed)) {
		if _, there := v.names[name]; there && !s.wasUnclear(name) && !(s.held[name] != nil && s.lapsed(s.held[name])) {
			s.violated(brought, "%s was not sent behind what brings it", name)
		}
	}
}

func (s *typed) checkPresent(want world.Encoded) {
	x := s.held[want.Name]
	switch {
	case x == nil:
		s.violated(lost, "%s did not come; it should be %q", want.Name, want.Body)
	case x.Version != want.Version:
		s.violated(lost, "%s is %q and should be %q", want.Name, x.Body, want.Body)
	case s.spec.Exclusive && (s.dropped || s.clashesWith(s.uses, want)):
		// The conflicting resource was NACKed itself, or is unclear, or the client dropped it.
	case x.state == nacked && !x.bad && !s.full && !s.wasUnclear(want.Name):
		s.violated(contained, "%s is fine, was NACKed with others, and did not come again", want.Name)
	}
}

// checkAbsent checks a resource that a client has and that does not exist.
func (s *typed) checkAbsent(x *thing) {
	empty, ok := s.empty(x.Name)
	switch {
	case !s.maker.complete && !s.proven(x), s.c.guarded(): // whether the resource is gone, or which resources refer to it, is not known yet
	case s.emptied(x):
	case s.full || s.mode == world.Delta:
		s.violated(lost, "%s is gone and was not removed", x.Name)
	case ok && x.Version != empty.Version:
		s.violated(lost, "%s is gone, and the client was not sent the empty resource", x.Name)
	}
}

// emptied reports whether the client holds a name as the empty resource that is sent
// in place of a removal.
func (s *typed) emptied(x *thing) bool {
	empty, ok := s.empty(x.Name)
	return ok && x.Version == empty.Version && (s.mode == world.Delta || s.absence() == world.Empty)
}

// checkAnswer checks the answer to a request for a name which does not exist. The table of
// types defines the answer.
func (s *typed) checkAnswer(name string) {
	absence := s.absence()
	_, hasEmpty := s.empty(name)
	switch {
	case !s.maker.complete || s.wasUnclear(name):
	case absence == world.Removal && s.mode == world.Delta && !s.denied[name]:
		s.violated(lost, "the client asked for %s and was not answered that there is none", name)
	case absence == world.Empty && hasEmpty && (s.mode == world.WholeState || !s.denied[name]):
		s.violated(lost, "the client asked for %s and was not sent that it is empty", name)
	}
}

// absence is the answer to the client for a name that does not exist.
func (s *typed) absence() world.Absence {
	switch {
	case s.spec.Absent != nil:
		return s.spec.Absent(s.c.who.Kind, s.mode)
	case s.mode == world.Delta || s.spec.Whole:
		return world.Removal
	default:
		return world.Empty
	}
}

func (s *typed) wasUnclear(name string) bool {
	return slices.ContainsFunc(s.seen(), func(v view) bool { return v.unclear[name] != 0 })
}

func (s *typed) aggregates() bool { return s.spec.Aggregate != nil && s.spec.Aggregate(s.c.who.Kind) }

// heldBack reports whether a resource waits because of a NACK: for a resource that the
// client NACKed, or for another waiting resource.
func (s *typed) heldBack(e world.Encoded, depth int) bool {
	for other := range s.related(s.spec.Needs) {
		for _, name := range s.refers(e.Body, other) {
			x := other.held[name]
			if other.guarded() {
				return true
			}
			if !s.aggregates() && (other.kept[name] || x != nil && (x.state == nacked || x.state == suspected)) {
				return true
			}
			if next, there := other.now().names[name]; there && depth < 8 && other.heldBack(next, depth+1) {
				return true
			}
		}
	}
	return false
}

// settle drops the reasons for a resource to come again: everything is at rest, and it did
// not come.
func (s *typed) settle() {
	s.fence = s.c.h.clock + 1
	s.loose, s.anyway = false, false
	clear(s.crossed)
	s.cross()
	for _, x := range s.held {
		x.there = x.there || s.now().is(x.Encoded)
		s.lapsed(x)
	}
	if s.maker.published > 0 {
		s.again = 0
		maps.DeleteFunc(s.free, func(name string, _ bool) bool {
			return (s.held[name] != nil || s.maker.complete) && !s.wasUnclear(name) // a fault may keep it from being tried again
		})
		clear(s.owed)
		clear(s.missing)
		maps.DeleteFunc(s.repeats, func(name string, _ int) bool {
			waits := s.heldBack(s.now().names[name], 0)
			return !waits && s.held[name] != nil || s.denied[name] && s.maker.complete
		})
	}
}
