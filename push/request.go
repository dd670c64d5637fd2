package push

import (
	"slices"
	"time"
)

// Request is what a subscriber says about one type, in the engine's terms. A
// protocol fills in what its message said; all parts may come together.
type Request struct {
	Type   Type
	Answer Answer

	// Replace makes Names the full set of subscribed names, as whole-state
	// requests do. Names that are new are sent even if they were sent before.
	// The engine keeps Names, so they must not be written to again.
	Replace bool
	Names   []string
	// Overtaken marks a request with Replace that crossed a response on the
	// way. Only what it drops counts, for the subscriber has forgotten that; the
	// rest it will say again when it answers.
	Overtaken bool

	// Subscribe adds names, and Unsubscribe, after it, drops some. A name that
	// is subscribed again is sent again.
	Subscribe, Unsubscribe []string

	// Wildcard asks for all names there are, or stops asking.
	Wildcard Wildcard

	// Held is what a reconnecting Delta subscriber has already. It counts on
	// the type's first request only.
	Held map[string]Version
	// Claim is what a reconnecting WholeState subscriber says it accepted last.
	// It is no proof that the subscriber still holds that: of a response which it
	// refused later it may have taken a part.
	Claim *Version
}

// Answer says what became of a response.
type Answer struct {
	Verdict Verdict
	Serial  uint64 // of the response; an answer to one that is not awaited counts for nothing
	Reason  string // of a refusal
}

// Verdict is a subscriber's word on a response.
type Verdict int

// The verdicts.
const (
	NoAnswer Verdict = iota
	Accept
	Refuse
)

// Wildcard says what becomes of a subscription to everything.
type Wildcard int

// The changes of a wildcard.
const (
	WildcardKeep Wildcard = iota
	WildcardOn
	WildcardOff
)

// Request takes in a request. Its consequences follow through [Subscriber.Out].
func (s *Subscriber) Request(r Request) {
	o := s.take(r)
	if o.turn {
		s.engine.queue.add(s, o.urgent)
	}
	if o.accepted && s.engine.config.Accepted != nil {
		s.engine.config.Accepted(r.Type, o.took)
	}
}

// outcome is what follows from a request. Most acknowledgements leave nothing
// to do.
type outcome struct {
	turn, urgent bool // it takes a turn of a worker
	accepted     bool // a response was, so long after its oldest change:
	took         time.Duration
}

// take notes what a request says.
func (s *Subscriber) take(r Request) (o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return o
	}
	st := &s.types[r.Type]
	if r.Answer.Verdict != NoAnswer {
		o.accepted, o.took = s.answered(st, r)
	}
	first := !st.asked
	if first {
		s.begin(st, r)
	}
	if r.Replace {
		s.replace(st, r)
	}
	s.subscribe(st, r.Type, r.Subscribe, first)
	s.unsubscribe(st, r.Type, r.Unsubscribe)
	s.setWildcard(st, r)
	if first {
		// An empty first response tells a client that there is nothing to wait
		// for. One that resumes is not waiting.
		st.answer = s.mode == WholeState || st.wildcard && len(r.Held) == 0
	}
	if st.blocks() {
		o.turn, o.urgent = s.needs()
	} else {
		o.turn, o.urgent = s.unblocked(r.Type)
	}
	return o
}

// answered takes note of what became of a response.
func (s *Subscriber) answered(st *state, r Request) (accepted bool, took time.Duration) {
	if r.Answer.Verdict == Refuse && st.refuse(r.Answer.Serial) {
		st.record.refuse(time.Now(), r.Answer.Reason)
		s.engine.counts.types[r.Type].refusals.Add(1)
	}
	f := st.land(r.Answer.Serial)
	if f == nil || r.Answer.Verdict == Refuse {
		return false, 0
	}
	if st.full {
		clear(st.refused) // the whole set was accepted
	}
	st.record.accept(time.Now(), f.version)
	if f.since.IsZero() {
		return false, 0
	}
	return true, time.Since(f.since)
}

// begin takes in what only the first request of a type can say.
func (s *Subscriber) begin(st *state, r Request) {
	st.asked = true
	st.record.since = time.Now()
	st.claim = r.Claim
	for name, version := range r.Held {
		st.held[name] = held{version: version, resumed: true}
		st.sum = st.sum.plus(memberHash(name, version))
		st.want(name, pending{force: s.wasSentWith(r.Type, name)})
	}
}

// wasSentWith reports whether something was sent on this stream with which the
// resource of that name has to go. It could not while the type was not asked for.
func (s *Subscriber) wasSentWith(t Type, name string) bool {
	for i, spec := range s.engine.config.Types {
		if slices.Contains(spec.With, t) && s.types[i].held[name].sent {
			return true
		}
	}
	return false
}

func (s *Subscriber) replace(st *state, r Request) {
	if len(r.Names) > 0 && slices.Equal(r.Names, st.list) {
		return // as in nearly every acknowledgement
	}
	wanted := make(map[string]struct{}, len(r.Names))
	var added, dropped []string
	for _, name := range r.Names {
		wanted[name] = struct{}{}
		if _, ok := st.names[name]; !ok {
			added = append(added, name)
		}
	}
	for name := range st.names {
		if _, ok := wanted[name]; !ok {
			dropped = append(dropped, name)
		}
	}
	if r.Overtaken {
		s.unsubscribe(st, r.Type, dropped)
		st.list = nil
		return
	}
	s.subscribe(st, r.Type, added, false)
	s.unsubscribe(st, r.Type, dropped)
	// Both of one message, so that the text of each name is kept once.
	st.list, st.names = r.Names, wanted
}

// subscribe adds names. The first request of a type may say what the subscriber
// has of them, which then need not be sent.
func (s *Subscriber) subscribe(st *state, t Type, names []string, first bool) {
	if len(names) == 0 {
		return
	}
	// Into the index before the world is read: no change falls between.
	s.engine.index.add(s, t, slices.Values(names))
	for _, name := range names {
		st.names[name] = struct{}{}
		st.want(name, pending{force: !first || !st.held[name].resumed})
	}
}

func (s *Subscriber) unsubscribe(st *state, t Type, names []string) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, subscribed := st.names[name]
		return !subscribed
	})
	if len(names) == 0 {
		return
	}
	s.engine.index.remove(s, t, slices.Values(names))
	for _, name := range names {
		delete(st.names, name)
		delete(st.unproven, name)
		if st.wildcard {
			// Whether the wildcard still gives it must be said.
			st.want(name, pending{force: s.mode == Delta})
			continue
		}
		st.forget(name)
	}
}

func (s *Subscriber) setWildcard(st *state, r Request) {
	switch {
	case r.Wildcard == WildcardOn && r.Overtaken:
		// As with names, it will be said again.
	case r.Wildcard == WildcardOn && !st.wildcard:
		st.wildcard, st.expand = true, true
		s.engine.index.setWildcard(s, r.Type, true)
	case r.Wildcard == WildcardOn && s.mode == Delta:
		st.expand = true // asked again: names it lacks are found by comparing
	case r.Wildcard == WildcardOff && st.wildcard:
		st.wildcard, st.expand = false, false
		s.engine.index.setWildcard(s, r.Type, false)
		st.forgetUnsubscribed()
	}
}
