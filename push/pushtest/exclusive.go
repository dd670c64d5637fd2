package pushtest

import (
	"maps"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// clashes reports whether a client NACKs a response of an exclusive type because of the
// resources that the client would then have.
func (s *typed) clashes(f *flight) bool {
	if !s.spec.Exclusive {
		return false
	}
	then := maps.Clone(s.uses)
	s.apply(then, f)
	for name, body := range then {
		if s.clashesWith(then, world.Encoded{Name: name, Body: body}) {
			return true
		}
	}
	return false
}

// clashesWith reports whether a resource conflicts with any of others.
func (s *typed) clashesWith(others map[string][]byte, e world.Encoded) bool {
	if !s.spec.Exclusive {
		return false
	}
	for name, body := range others {
		if name != e.Name && s.maker.Excludes(s.row, body, e.Body) {
			return true
		}
	}
	return false
}

// use makes a client use a response of an exclusive type. Its NACKed resources may be valid
// afterwards, and come again.
func (s *typed) use(f *flight) {
	if !s.spec.Exclusive {
		return
	}
	s.apply(s.uses, f)
	for name, x := range s.held {
		if x.state == nacked && x.serial != f.serial {
			s.repeats[name]++
		}
	}
}

func (s *typed) apply(to map[string][]byte, f *flight) {
	for _, name := range f.removed {
		delete(to, name)
	}
	for _, e := range f.changed {
		if s.subscribed(e.Name) {
			to[e.Name] = e.Body
		}
	}
}
