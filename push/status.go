package push

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// history is what is shown of a type of a subscriber. It decides nothing.
type history struct {
	since              time.Time // of the first request
	sentAt, acceptedAt time.Time
	refusedAt          time.Time
	sent, accepted     Version
	reason             string // of the last refusal
	refusals           int
}

func (h *history) send(now time.Time, v Version) { h.sentAt, h.sent = now, v }

func (h *history) accept(now time.Time, v Version) { h.acceptedAt, h.accepted = now, v }

func (h *history) refuse(now time.Time, reason string) {
	h.refusedAt, h.reason = now, reason
	h.refusals++
}

// Standing is how a subscriber stands with a type.
type Standing string

// The standings.
const (
	Accepted Standing = "accepted" // it accepted the newest response
	Waiting  Standing = "waiting"  // the newest response is not answered yet
	Refused  Standing = "refused"  // it refused the newest response
	Idle     Standing = "idle"     // it asked and there was nothing to send
)

// TypeStatus is what a subscriber has of a type.
type TypeStatus struct {
	Type       string
	Standing   Standing
	Since      time.Time // when the standing began
	Reason     string
	Sent       string // version of the newest response
	Accepted   string // version of the newest accepted one
	Subscribed int    // names asked for; -1 for everything
	Held       int    // resources it has been sent
	Pending    int    // names that wait to be looked at
	Refusals   int
}

// ClientStatus is one subscriber as the admin API shows it.
type ClientStatus struct {
	Info
	Client Client
	// Scope names what narrows its view; empty if nothing does.
	Scope string
	Types []TypeStatus
}

// Clients lists the subscribers, by identifier and age.
func (e *Engine) Clients() []ClientStatus {
	var list []ClientStatus
	for s := range e.all() {
		list = append(list, s.status())
	}
	slices.SortFunc(list, func(a, b ClientStatus) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), a.Since.Compare(b.Since), cmp.Compare(a.Protocol, b.Protocol))
	})
	return list
}

// Len is the number of subscribers.
func (e *Engine) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subscribers)
}

// Subscribed is the number of names of a type that the subscriber asks for.
func (s *Subscriber) Subscribed(t Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.types[t].names)
}

// SubscribedBytes is how long these names are together. It looks at each.
func (s *Subscriber) SubscribedBytes(t Type) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.types[t].names {
		n += len(name)
	}
	return n
}

func (s *Subscriber) status() ClientStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := ClientStatus{Info: s.Info, Client: s.client}
	if s.view.Scope != nil {
		c.Scope = fmt.Sprint(s.view.Scope)
	}
	for t := range s.types {
		if st := &s.types[t]; st.asked {
			shown := st.status(s.engine.config.Types[t].Name)
			shown.Pending += s.markedBeside(t)
			c.Types = append(c.Types, shown)
		}
	}
	return c
}

func (st *state) status(name string) TypeStatus {
	h := &st.record
	out := TypeStatus{
		Type: name, Standing: Idle, Since: h.since, Subscribed: len(st.names),
		Held: len(st.held), Pending: len(st.pending), Refusals: h.refusals,
	}
	if st.wildcard {
		out.Subscribed = -1
	}
	if !h.sentAt.IsZero() {
		out.Sent = h.sent.String()
	}
	if !h.acceptedAt.IsZero() {
		out.Accepted = h.accepted.String()
	}
	switch {
	case len(st.flights) > 0:
		out.Standing, out.Since, out.Reason = Waiting, st.flights[0].waits, st.newest().reason()
	case h.refusedAt.After(h.acceptedAt):
		out.Standing, out.Since, out.Reason = Refused, h.refusedAt, h.reason
	case !h.acceptedAt.IsZero():
		out.Standing, out.Since = Accepted, h.acceptedAt
	case st.guard:
		out.Reason = "it keeps what it had before it connected until every source has been listed"
	}
	return out
}

func (f *flight) reason() string {
	switch {
	case f.sentAt.IsZero():
		return "the client does not read: the response is not on the wire yet"
	case f.overdue:
		return "the client has not answered in time; the newest is sent when something changes"
	default:
		return "the client has not answered yet"
	}
}

// counters count what an engine sent.
type counters struct{ types []typeCounters }

type typeCounters struct{ responses, resources, bytes, refusals atomic.Uint64 }

func (c *counters) sent(t Type, resources, bytes int) {
	c.types[t].responses.Add(1)
	c.types[t].resources.Add(uint64(resources)) //nolint:gosec // a length is not negative
	c.types[t].bytes.Add(uint64(bytes))         //nolint:gosec // as above
}

// Count is what an engine sent of a type since its start.
type Count struct {
	Type                                  string
	Responses, Resources, Bytes, Refusals uint64
}

// Counts returns the counts by type, in the order of delivery.
func (e *Engine) Counts() []Count {
	counts := make([]Count, len(e.config.Types))
	for t := range counts {
		c := &e.counts.types[t]
		counts[t] = Count{e.config.Types[t].Name, c.responses.Load(), c.resources.Load(), c.bytes.Load(), c.refusals.Load()}
	}
	return counts
}
