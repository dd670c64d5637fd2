package session

import (
	"hash/maphash"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// State is the state of one type on a stream. It begins with the first request for the
// type.
type State struct {
	subscription
	inventory
	agenda
	nacks
	inFlight
	beginning
	record record

	t        world.Type
	spec     *world.TypeSpec
	view     *world.SharedView // nil until the first turn
	warnings []string          // not yet taken
}

// subscription is how the client takes a type, and whether it asks for all names.
type subscription struct {
	mode     world.Mode
	either   bool // takes increments as well as whole sets
	wildcard bool
	listed   uint64 // digest of the names as last listed in full; 0 if they were not
}

// beginning is the part of a state that matters until the first state of a type is sent.
type beginning struct {
	claim   *world.Version // the version that the client claims to hold
	ours    bool           // this engine issued the claimed version, and the client asks for no other names
	resumes bool           // its first request listed the resources that it holds
	answer  bool           // the first request awaits a response, even an empty one
	first   bool           // the mark that its first state is complete is still due
	guard   bool           // the client is sent nothing yet, so that it keeps the resources that it holds
}

// tooMany is the number of names above which those that came and went meanwhile are dropped.
const tooMany = 1024

func newState(t world.Type, spec *world.TypeSpec, m world.Mode, seed maphash.Seed, to *roused, now time.Time) *State {
	return &State{
		t: t, spec: spec, subscription: subscription{mode: m}, agenda: agenda{roused: to},
		inventory: inventory{seed: seed, full: spec.Whole && m == world.WholeState}, record: record{began: now},
	}
}

// Mode returns how the client takes the type.
func (s *State) Mode() world.Mode { return s.mode }

// Asked returns the number of names that the client asks for, and AllNamed yields them.
func (s *State) Asked() int { return s.asked }

// AllNamed yields the names that the client asks for.
func (s *State) AllNamed(yield func(string) bool) { s.allNamed(yield) }

// Listed returns the digest of the names as the client last listed them. It is 0 if there
// is no list, or the names have changed since.
func (s *State) Listed() uint64 { return s.listed }

// NACKs returns the number of responses that the client has NACKed.
func (s *State) NACKs() int { return s.record.nacks }

// Considers reports whether a name is to be considered, now or after its wait.
func (s *State) Considers(name string) bool {
	_, ok := s.coming(name)
	return ok
}

// TakeWarnings returns why due resources are not sent, each once.
func (s *State) TakeWarnings() []string {
	if s.warnings == nil { // the usual case
		return nil
	}
	warnings := s.warnings
	s.warnings = nil
	return warnings
}

// subscribed reports whether the client wants the name.
func (s *State) subscribed(name string) bool { return s.wildcard || s.named(name) }

// SetView gives the client its current view of the type. Every name that it asks for or
// holds is considered again, and so reaches it as an addition or removal in the usual
// order.
func (s *State) SetView(v *world.SharedView) {
	first := s.view == nil
	if s.view = v; first {
		return // everything is pending in any case
	}
	s.expand = s.wildcard
	for name := range s.waits.names {
		s.want(name, Pending{})
	}
	for name := range s.allNamed {
		s.want(name, Pending{})
	}
	for h := range s.held.All {
		s.want(h.Name, Pending{})
	}
}

// Swap takes marked names as the pending ones, if they are few and there are no others. It
// returns an empty map for the next marks.
func (s *State) Swap(names map[string]Pending) (spare map[string]Pending, ok bool) {
	return s.swap(names)
}

// Mark makes marked names pending.
func (s *State) Mark(names map[string]Pending) {
	for name, p := range names {
		s.want(name, p)
	}
	s.trim()
}

// trim drops names that changed while the wildcard's response goes unanswered, if they are
// far more than the client holds. The existing ones among them are found again when the
// wildcard is expanded.
func (s *State) trim() {
	if !s.wildcard || !s.Blocks() || len(s.pending) <= s.held.N+len(s.lacks.names)+tooMany {
		return
	}
	for name, p := range s.pending {
		if !p.again() && s.holding(name) == nil && !s.lacks.has(name) {
			delete(s.pending, name)
		}
	}
	s.expand = true
}

// Recheck considers names again that were not found while some source had not been listed.
func (s *State) Recheck() {
	for name := range s.unproven {
		s.want(name, Pending{force: s.holding(name) == nil}) // a client without the resource waits for an answer
	}
	s.unproven = nil
}

// unpack makes names of batches pending, up to the names of a turn.
func (s *State) unpack(most int) {
	for len(s.fresh) > 0 && len(s.pending) < most {
		b := &s.fresh[0]
		n := min(len(b.names), most-len(s.pending))
		for _, name := range b.names[:n] {
			if s.subscribed(name) || s.holding(name) != nil { // otherwise it was dropped meanwhile
				s.want(name, Pending{force: b.again})
			}
		}
		if b.names = b.names[n:]; len(b.names) == 0 {
			s.fresh = s.fresh[1:]
		}
	}
	if len(s.fresh) == 0 {
		s.fresh = nil
	}
}

// rests reports whether there is nothing to send and nothing to look at.
func (s *State) rests() bool {
	return len(s.pending) == 0 && len(s.fresh) == 0 && !s.expand && !s.answer && s.again == 0 && !s.open.due && !s.first
}

// quiet reports whether no name of the type is in flight, pending or NACKed. A subject then
// need not be asked for its references.
func (s *State) quiet() bool {
	return len(s.pending) == 0 && len(s.waits.names) == 0 && len(s.fresh) == 0 && len(s.nacked) == 0 && !s.expand && s.open.serial == 0 && !s.Blocks()
}

// ready reports whether a turn would consider or retry any name.
func (s *State) ready() bool {
	return s.view != nil && (s.waiting() > 0 || s.expand || s.again > 0) && !s.guard && !s.Blocks()
}

// carried returns the waiters for the answer to the response that contains a name; nil if
// no awaited response contains it.
func (s *State) carried(name string) *waiters {
	if !s.Blocks() && s.open.serial == 0 {
		return nil
	}
	by := s.removed[name]
	if h := s.holding(name); h != nil {
		by = uint64(h.serial)
	}
	return s.awaited(by)
}

// settle records that everything up to a step was sent and answered. Removals of other
// types may wait for that.
func (s *State) settle(step uint64) {
	if s.inFlight.settle(step) {
		s.roused.removals = true
	}
}

// cover records that everything up to a step was sent. While names wait, a change before
// that step may not have been sent, unless a NACK holds it back.
func (s *State) cover(step uint64) {
	if s.waits.keeping == 0 && s.inFlight.cover(step) {
		s.roused.removals = true
	}
}

// rouseRemovals makes the removals pending that wait for a step up to the settled one.
func (s *State) rouseRemovals(settled uint64) {
	for step, names := range s.waits.steps {
		if step > settled {
			continue
		}
		for name := range names {
			s.want(name, Pending{})
		}
	}
}

// Counts are the sizes of a state's parts.
type Counts struct{ Pending, Held, Lacking, Removed, InFlight, NACKed, Waiting int }

// Counts returns the sizes of the state's parts, for tests of their bounds.
func (s *State) Counts() Counts {
	c := Counts{len(s.pending), s.held.N, len(s.lacks.names), len(s.removed), len(s.unanswered), len(s.nacked), 0}
	c.Waiting = len(s.waits.names) + len(s.waits.steps) + len(s.behind) + s.open.behind.size()
	for _, w := range s.behind {
		c.Waiting += w.size()
	}
	for _, r := range s.unanswered {
		c.Waiting += r.behind.size()
	}
	return c
}

// Holds reports whether the client is known to hold exactly a version.
func (s *State) Holds(name string, m world.Member) bool {
	h := s.holding(name)
	return h != nil && h.is(m)
}

// unalter records that the full set in the making leaves a name as the client has it. A set
// that changes no name is not sent, unless the client asked for it.
func (s *State) unalter(name string) {
	if _, altered := s.open.before[name]; !altered {
		return
	}
	delete(s.open.before, name)
	delete(s.open.brings, name)
	if len(s.open.before) > 0 || s.open.asked || s.answer {
		return
	}
	s.open.behind.rouse(s.roused)
	s.open, s.record.withheld = opening{}, withheld{}
}

// firm has the full set in the making sent even if it equals the last one, after a NACK that
// puts that one in question.
func (o *opening) firm() {
	if len(o.before) > 0 {
		o.asked, o.before = true, nil
	}
}
