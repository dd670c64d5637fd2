package session

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Limits bound the responses of a stream and what one turn considers.
type Limits struct {
	Budget  int // bytes of a response that may be split
	Largest int // bytes of a full set and of a single resource; zero means no bound
	Turn    int // names that one turn considers for a type
}

// Stream is the states of all types that a client asked for.
type Stream struct {
	limits    Limits
	kind      string // of the client
	seed      maphash.Seed
	states    []*State // by type; nil for types that were not asked for
	serial    uint64   // of the newest response
	roused    roused
	relations *world.Types
}

// NewStream returns the stream of a kind of client. The seed is that of [world.Reader].
func NewStream(limits Limits, kind string, seed maphash.Seed) *Stream {
	return &Stream{limits: limits, kind: kind, seed: seed}
}

// Begin starts the state of a type.
func (s *Stream) Begin(types *world.Types, t world.Type, m world.Mode, now time.Time) *State {
	if n := int(t) + 1; n > len(s.states) {
		s.states = append(s.states, make([]*State, n-len(s.states))...)
	}
	s.relations = types
	s.states[t] = newState(t, &types.All[t].TypeSpec, m, s.seed, &s.roused, now)
	return s.states[t]
}

// state returns the state of a type; nil if it was not asked for.
func (s *Stream) state(t world.Type) *State {
	if int(t) >= len(s.states) {
		return nil
	}
	return s.states[t]
}

// all yields the states, in the order of their types.
func (s *Stream) all(yield func(*State) bool) {
	for _, one := range s.states {
		if one != nil && !yield(one) {
			return
		}
	}
}

// Request applies the parts of a request that need no room: its answer, and the mode in
// which it takes the type.
func (s *Stream) Request(of *State, r *Request, now time.Time) (o Answered) {
	if r.Answer.Kind != NoAnswer {
		o = of.Answer(r.Answer, now)
	}
	if of.either = r.Either; r.EachTime {
		switchMode(of, r.Mode, o.NACKed)
	}
	return o
}

// Entered expands the wildcards of types with resources within another's. The client claims
// to hold resources of that. It may have sent the wildcard before it asked for them, and an
// unchanged resource that it holds does not bring them.
func (s *Stream) Entered(of *State) {
	for _, t := range s.relations.All[of.t].BringTypes {
		if other := s.state(t); other != nil && other.spec.Parent != nil {
			other.expand = other.wildcard
		}
	}
}

// Needs reports whether any type has names to send or to consider, and whether any of them
// is urgent. A removal may wait for a type that has nothing to send, which only a turn can
// detect.
func (s *Stream) Needs() (turn, urgent bool) {
	s.deliver()
	for one := range s.all {
		turn = turn || !one.rests() || len(one.waits.steps) > 0
		urgent = urgent || one.urgent && len(one.pending) > 0
	}
	return turn, urgent
}

// Left reports, after a turn, whether another one would send more, and whether any name
// still waits.
func (s *Stream) Left() (more, waits bool) {
	for one := range s.all {
		more = more || one.ready()
		waits = waits || one.waiting() > 0 || len(one.waits.names) > 0
	}
	return more, waits
}

// deliver makes the names pending whose obstacles are gone.
func (s *Stream) deliver() {
	if len(s.roused.names) > 0 || s.roused.removals { // seldom
		s.deliverAll()
	}
}

func (s *Stream) deliverAll() {
	for {
		if last := len(s.roused.names) - 1; last >= 0 {
			x := s.roused.names[last]
			s.roused.names = s.roused.names[:last]
			if of := s.states[x.t]; of != nil {
				if _, waits := of.waits.names[x.name]; waits {
					of.want(x.name, Pending{})
				}
			}
			continue
		}
		if cap(s.roused.names) > Few {
			s.roused.names = nil
		}
		if !s.roused.removals {
			return
		}
		s.roused.removals = false
		for one := range s.all {
			if len(one.waits.steps) > 0 {
				one.rouseRemovals(s.referrersSettled(one))
			}
		}
	}
}

// referrersSettled returns the step up to which all types that may refer to a type are
// settled. A guarded type does not count: nothing is sent to it, for an unlimited time.
func (s *Stream) referrersSettled(of *State) uint64 {
	settled := uint64(math.MaxUint64)
	for _, t := range s.relations.All[of.t].Referrers {
		if other := s.state(t); other != nil && !other.guard {
			settled = min(settled, other.settled)
		}
	}
	return settled
}
