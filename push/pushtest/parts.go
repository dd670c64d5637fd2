package pushtest

import (
	"bytes"
	"slices"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// joined returns the resource that the client has once it has applied a response. The
// result must not depend on the client's previous state. A NACKed response may have changed
// nothing, and the client does not list the resources kept from an earlier stream.
func (s *typed) joined(sent world.Encoded) world.Encoded {
	take := s.maker.Take
	if take == nil {
		return sent
	}
	all := s.c.has[s.t][sent.Name]
	if len(all) == 0 {
		all = []world.Encoded{{}}
	}
	var is world.Encoded
	for i, before := range all {
		after, err := take(s.row, before, sent)
		switch {
		case err != nil:
			s.violated(lost, "%s cannot be taken: %v", sent.Name, err)
		case i > 0 && !alikeIn(is, after):
			s.violated(lost, "%s is %q or %q, by what the client had", sent.Name, is.Body, after.Body)
		}
		is = after
	}
	s.keep(is, all...)
	return is
}

func alikeIn(a, b world.Encoded) bool { return a.Version == b.Version && bytes.Equal(a.Body, b.Body) }

// keep records the states in which the client may have a resource.
func (s *typed) keep(is world.Encoded, or ...world.Encoded) {
	if s.maker.Take == nil {
		return
	}
	if !slices.ContainsFunc(or, func(o world.Encoded) bool { return alikeIn(o, is) }) {
		or = append(slices.Clone(or), is)
	}
	if s.c.has == nil {
		s.c.has = map[world.Type]map[string][]world.Encoded{}
	}
	if s.c.has[s.t] == nil {
		s.c.has[s.t] = map[string][]world.Encoded{}
	}
	s.c.has[s.t][is.Name] = or
}
