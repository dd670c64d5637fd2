package push

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Request is a subscriber's message about one type, in the engine's terms. The protocol
// fills it in; all parts may come together.
type Request struct {
	Type Type
	// Mode is how the subscriber takes the type. It counts on the type's first request. With
	// EachTime, it counts on every request, for the next response.
	Mode     Mode
	EachTime bool
	// Either means that a WholeState subscriber takes increments as well. It gets increments
	// instead of a full set in two cases. The set is too large for a message, or it would have
	// to wait until every source has been listed.
	Either bool
	// Confirm asks for an answer to the type's first request even if there is nothing to send.
	Confirm bool
	// MarkFirst asks for marks on the responses of the type's first state, and on the one that
	// completes it. It counts on the first request of a Delta subscriber.
	MarkFirst bool
	Answer    Answer

	// Replace makes Names the full set of subscribed names, as whole-state
	// requests do. Names that are new are sent even if they were sent before.
	Replace bool
	Names   []string
	// Digest, if not 0, is a hash of Names. If it equals the result of [Subscriber.Listed],
	// Names may be empty.
	Digest uint64
	// Overtaken marks a request with Replace that crossed a response in flight. Only the names
	// that it drops count, because the subscriber has forgotten them. Its answer to the
	// response will repeat the rest.
	Overtaken bool

	// Subscribe adds names, and Unsubscribe, after it, drops some. A name that
	// is subscribed again is sent again.
	Subscribe, Unsubscribe []string

	// Wildcard asks for all existing names, or stops asking.
	Wildcard Wildcard

	// Held is the versions that a reconnecting Delta subscriber already has. It counts on the
	// type's first request only.
	Held map[string]Version
	// Claim is the version that a reconnecting WholeState subscriber claims to have ACKed
	// last. It is no proof that the subscriber still holds that version: it may have applied
	// parts of a later response that it NACKed.
	Claim *Version
}

// Answer is a subscriber's answer to a response.
type Answer struct {
	Kind   AnswerKind
	Serial uint64 // of the response; an answer to an unawaited response is ignored
	Reason string // of a NACK
}

// AnswerKind distinguishes an ACK, a NACK and neither.
type AnswerKind int

// The answers to a response.
const (
	NoAnswer AnswerKind = iota
	ACK
	NACK
)

// Wildcard starts, keeps or ends a subscription to everything.
type Wildcard int

// The changes of a wildcard.
const (
	WildcardKeep Wildcard = iota
	WildcardOn
	WildcardOff
)

// ErrTypes is returned for a request of one type more than [MaxTypes].
var ErrTypes = errors.New("too many types on one stream")

// Request applies a request. The responses follow through [Subscriber.Out]. If the request
// asks for more than the subscriber may hold, [ErrHoldings] or [ErrTypes] is returned, and
// only its answer counts.
func (s *Subscriber) Request(r Request) error {
	o, err := s.take(r)
	if o.turn {
		s.engine.queue.add(s, o.urgent)
	}
	if o.acked && s.engine.config.ACKed != nil {
		s.engine.config.ACKed(r.Type, o.took)
	}
	return err
}

// outcome is the effect of a request. Most ACKs require no further work.
type outcome struct {
	turn, urgent bool          // a turn of a worker is needed
	acked        bool          // a response with a known age was ACKed
	nacked       bool          // a response was NACKed
	took         time.Duration // since the oldest change in that response
}

// take applies a request to the subscriber's state.
func (s *Subscriber) take(r Request) (o outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return o, nil
	}
	i := s.interest(r.Type)
	first := i == nil
	if first {
		if s.asked == MaxTypes {
			return o, ErrTypes
		}
		i = s.begin(r.Type, r.Mode)
	}
	if r.Answer.Kind != NoAnswer {
		nacks := i.record.nacks
		o.acked, o.took = s.answered(i, r)
		o.nacked = i.record.nacks > nacks
	}
	if i.either = r.Either; r.EachTime {
		s.switched(i, r.Mode, o.nacked)
	}
	err = s.interested(i, r, first)
	if i.blocks() {
		o.turn, o.urgent = s.needs()
	} else {
		o.turn, o.urgent = s.unblocked(i)
	}
	return o, err
}

// interested applies the subscriptions of a request.
func (s *Subscriber) interested(i *interest, r Request, first bool) error {
	if first {
		if err := s.resume(i, r); err != nil {
			return err
		}
	}
	if r.Replace {
		if err := s.replace(i, r); err != nil {
			return err
		}
	}
	if err := s.subscribe(i, r.Subscribe, first); err != nil {
		return err
	}
	s.unsubscribe(i, r.Unsubscribe)
	s.setWildcard(i, r)
	if first {
		// An empty first response tells a client that there is nothing to wait for. A client that
		// resumes is not waiting.
		i.first = i.mode == Delta && r.MarkFirst
		i.answer = i.mode == WholeState || i.wildcard && len(r.Held) == 0 || r.Confirm
	}
	return nil
}

// answered applies the answer to a response.
func (s *Subscriber) answered(i *interest, r Request) (acked bool, took time.Duration) {
	counts := s.engine.table.Load().types[i.t].counts
	defer i.retryAlone()
	if r.Answer.Kind == NACK && i.noteNACK(r.Answer.Serial, r.Answer.Reason) {
		i.record.nack(time.Now(), r.Answer.Reason)
		i.record.unnamed = len(i.nacked) == 0
		counts.nacks.Add(1)
	}
	f := i.land(r.Answer.Serial)
	if f == nil || r.Answer.Kind == NACK {
		return false, 0
	}
	if i.full { // the whole set was ACKed
		i.clearNACKs()
	}
	i.otherwise = i.otherwise || i.exclusive && f.brought > 0
	i.record.ack(time.Now(), f.version)
	if f.since.IsZero() {
		return false, 0
	}
	return true, time.Since(f.since)
}

// resume applies the parts that count on the first request of a type only.
func (s *Subscriber) resume(i *interest, r Request) error {
	i.claim, i.ours = r.Claim, s.engine.reader.Issued.Knows(r.Claim)
	if len(r.Held) == 0 || s.engine.table.Load().types[i.t].Increments {
		return nil
	}
	if err := s.charge(slices.Collect(maps.Keys(r.Held)), 1); err != nil {
		return err
	}
	i.resumes = true
	names := make([]string, 0, len(r.Held))
	for name, version := range r.Held {
		i.resume(name, version)
		names = append(names, name)
	}
	i.wantAll(batch{names: names})
	s.entered(i)
	return nil
}

// Listed returns the digest of the names as the subscriber last listed them. It returns 0
// if there is no list, or the names have changed since.
func (s *Subscriber) Listed(t Type) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.listed
	}
	return 0
}

// replace makes the subscriber ask for exactly the names of a request.
func (s *Subscriber) replace(i *interest, r Request) error {
	if r.Digest != 0 && r.Digest == i.listed {
		return nil // the usual case of an ACK
	}
	wanted := make(map[string]struct{}, len(r.Names))
	var added, dropped []string
	for _, name := range r.Names {
		if _, twice := wanted[name]; !twice && !i.named(name) {
			added = append(added, name)
		}
		wanted[name] = struct{}{}
	}
	for name := range i.allNamed {
		if _, ok := wanted[name]; !ok {
			dropped = append(dropped, name)
		}
	}
	if r.Overtaken {
		s.unsubscribe(i, dropped)
		i.listed = 0
		return nil
	}
	s.unsubscribe(i, dropped) // first, to make room for the added names
	if err := s.subscribe(i, added, false); err != nil {
		return err
	}
	i.listed = r.Digest
	return nil
}

// subscribe adds names. The first request of a type may list versions that the subscriber
// already has, which need not be sent.
func (s *Subscriber) subscribe(i *interest, names []string, first bool) error {
	if len(names) == 0 {
		return nil
	}
	added := without(names, i.named)
	if err := s.charge(added, 1); err != nil {
		return err
	}
	i.ours = i.ours && (i.asked == 0 || len(added) == 0) // names requested later are not covered by the claim
	// Enter the index before the world is read: no change falls between.
	s.engine.index.add(i, slices.Values(added))
	for k, name := range added {
		if !i.ask(name) {
			_ = s.charge(added[k:k+1], -1) // the request contains the name twice
		}
		i.meet(name)
	}
	if first { // held names are considered in any case
		names = without(names, func(name string) bool { return i.holding(name) != nil })
	}
	i.wantAll(batch{names: names, again: true})
	return nil
}

func (s *Subscriber) unsubscribe(i *interest, names []string) {
	var dropped []string
	for _, name := range names {
		if i.named(name) {
			i.drop(name)
			dropped = append(dropped, name)
		}
	}
	if len(dropped) == 0 {
		return // the usual case of an ACK
	}
	s.engine.index.remove(i, slices.Values(dropped))
	_ = s.charge(dropped, -1) // giving back never fails
	for _, name := range dropped {
		delete(i.unproven, name)
		if i.wildcard {
			// The client has to learn whether the wildcard still includes it.
			i.want(name, pending{force: i.mode == Delta})
			continue
		}
		i.forget(name)
	}
}

func (s *Subscriber) setWildcard(i *interest, r Request) {
	switch {
	case r.Wildcard == WildcardOn && r.Overtaken:
		// As with names, the answer to the response will repeat it.
	case r.Wildcard == WildcardOn && !i.wildcard:
		i.wildcard, i.expand = true, true
		s.engine.index.setWildcard(i, true)
		for name := range i.crossed {
			i.meet(name)
		}
	case r.Wildcard == WildcardOn && i.mode == Delta:
		i.expand = true // asked again: a comparison finds the names that it lacks
	case r.Wildcard == WildcardOff && i.wildcard:
		i.wildcard, i.expand = false, false
		s.engine.index.setWildcard(i, false)
		i.forgetUnsubscribed()
	}
}
