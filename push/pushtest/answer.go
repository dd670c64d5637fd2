package pushtest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// answer ACKs or NACKs the oldest response of a type.
func (c *client) answer(s *typed) {
	f := s.inflight[0]
	s.inflight = s.inflight[1:]
	late := time.Since(f.at) >= c.h.patience
	bad := slices.ContainsFunc(f.changed, func(e world.Encoded) bool { return s.nacks(e.Name) })
	if s.full {
		bad = false
		for name := range s.held {
			bad = bad || s.nacks(name)
		}
	}
	bad = bad || s.clashes(f)
	for _, e := range f.changed {
		s.settled[e.Name] = e
	}
	for _, name := range f.removed {
		delete(s.settled, name)
	}
	word := session.ACK
	if bad {
		word = session.NACK
		s.nack(f, late)
	} else {
		s.ack(f, late)
	}
	c.h.clock++
	r := session.Request{Answer: session.Answer{Kind: word, Serial: f.serial, Reason: fmt.Sprint("bad: ", bad)}}
	if s.mode == world.WholeState && rapid.Bool().Draw(c.h.t, "says it all") {
		r.Replace, r.Names = true, slices.Sorted(maps.Keys(s.named))
		if s.wildcard > 0 {
			r.Wildcard = session.WildcardOn
		}
	}
	c.request(s, r)
}

func (s *typed) ack(f *flight, late bool) {
	s.acked = &f.version
	s.use(f)
	clear(s.kept)
	for name, x := range s.held {
		if x.serial == f.serial || s.full && x.serial < f.serial {
			x.state, x.bad, x.overdue = acked, false, late
			s.applied[name] = x.Version
			s.keep(x.Encoded)
		}
	}
}

// nack records the outcome for the resources of a NACKed response. Resources that came with
// others may come again, alone or in groups.
func (s *typed) nack(f *flight, late bool) {
	if s.full && (late || len(s.inflight) > 0) {
		s.again++ // the newest set has an answer of its own
	}
	alone := len(f.changed)+len(f.removed) == 1
	for _, e := range f.changed {
		bad := s.nacks(e.Name)
		if !bad && (s.full || !s.c.rolls && !s.spec.Exclusive) {
			s.applied[e.Name] = e.Version
		}
		if !alone || !bad {
			s.free[e.Name] = true
		}
		x := s.held[e.Name]
		if x == nil || x.serial != f.serial {
			continue
		}
		x.state, x.bad, x.overdue = nacked, bad, late
	}
	for name, x := range s.held {
		if s.full && (!s.nacks(name) || x.state == acked) { // the resource at fault in the set is unknown, and since when
			x.state = suspected
		}
	}
	for _, name := range f.removed {
		s.free[name], s.kept[name] = true, s.full
	}
}
