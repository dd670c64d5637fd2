package push

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// ErrTypes is returned for a request of one type more than [MaxTypes].
var ErrTypes = errors.New("too many types on one stream")

// Request applies a request. The responses follow through [Subscriber.Out]. If the request
// asks for more than the subscriber may hold, [ErrHoldings] or [ErrTypes] is returned, and
// only its answer counts.
func (s *Subscriber) Request(r session.Request) error {
	o, err := s.take(r)
	if o.turn {
		s.engine.queue.Add(&s.place, o.urgent)
	}
	if o.nacked {
		s.engine.config.Events.Add(events.NACKed, s.Info.ID, s.engine.table.Load().types[r.Type].Name+": "+r.Answer.Reason)
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
	nacked       bool          // an awaited response was NACKed
	took         time.Duration // since the oldest change in that response
}

// take applies a request to the subscriber's state.
func (s *Subscriber) take(r session.Request) (o outcome, err error) {
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
	now := time.Now()
	answered := s.stream.Request(i.state, &r, now)
	r.Overtaken = r.Overtaken && i.state.Awaits() // otherwise nothing would repeat its names
	if o.nacked = answered.NACKed; o.nacked {
		s.engine.table.Load().types[i.Type].counts.nacks.Add(1)
	}
	if o.acked = answered.ACKed && !answered.Since.IsZero(); o.acked {
		o.took = now.Sub(answered.Since)
	}
	s.engine.index.SetMode(&i.Entry, i.state.Mode())
	err = s.interested(i, r, first)
	if i.state.Blocks() {
		o.turn, o.urgent = s.stream.Needs()
	} else {
		o.turn, o.urgent = s.unblocked(i)
	}
	return o, err
}

// interested applies the subscriptions of a request.
func (s *Subscriber) interested(i *interest, r session.Request, first bool) error {
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
	if r.Wildcard != session.WildcardKeep && i.state.SetWildcard(r.Wildcard, r.Overtaken) {
		s.engine.index.SetWildcard(&i.Entry, r.Wildcard == session.WildcardOn)
	}
	if first {
		i.state.Begun(&r)
	}
	return nil
}

// resume applies the parts that count on the first request of a type only.
func (s *Subscriber) resume(i *interest, r session.Request) error {
	i.state.Claims(r.Claim, s.engine.reader.Issued.Knows(r.Claim))
	if len(r.Held) == 0 || s.engine.table.Load().types[i.Type].Increments {
		return nil
	}
	if err := s.charge(slices.Collect(maps.Keys(r.Held)), 1); err != nil {
		return err
	}
	i.state.Resume(r.Held, time.Now())
	s.stream.Entered(i.state)
	return nil
}

// Listed returns the digest of the names as the subscriber last listed them. It returns 0
// if there is no list, or the names have changed since.
func (s *Subscriber) Listed(t world.Type) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.state.Listed()
	}
	return 0
}

// replace makes the subscriber ask for exactly the names of a request.
func (s *Subscriber) replace(i *interest, r session.Request) error {
	if r.Digest != 0 && r.Digest == i.state.Listed() {
		return nil // the usual case of an ACK
	}
	added, dropped := i.state.Replaces(r.Names)
	s.unsubscribe(i, dropped) // first, to make room for the added names
	if r.Overtaken {
		i.state.SetListed(0)
		return nil
	}
	if err := s.subscribe(i, added, false); err != nil {
		return err
	}
	i.state.SetListed(r.Digest)
	return nil
}

func (s *Subscriber) subscribe(i *interest, names []string, first bool) error {
	if len(names) == 0 {
		return nil
	}
	added := i.state.Lacks(names)
	if err := s.charge(added, 1); err != nil {
		return err
	}
	// Enter the index before the world is read: no change falls between.
	s.engine.index.Add(&i.Entry, slices.Values(added))
	twice := i.state.Subscribe(names, added, first)
	return s.charge(twice, -1)
}

func (s *Subscriber) unsubscribe(i *interest, names []string) {
	dropped := i.state.Unsubscribe(names)
	if len(dropped) == 0 {
		return // the usual case of an ACK
	}
	s.engine.index.Remove(&i.Entry, slices.Values(dropped))
	_ = s.charge(dropped, -1) // giving back never fails
}
