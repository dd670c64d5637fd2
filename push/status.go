package push

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// history records a subscriber's responses and answers of a type, for display. It decides
// nothing.
type history struct {
	since           time.Time // of the first request
	sentAt, ackedAt time.Time
	nackedAt        time.Time
	sent, acked     Version
	reason          string // of the last NACK
	nacks           int
	unnamed         bool // the last NACK affected no name that the engine knows
	sends, acks     int
}

func (h *history) send(now time.Time, v Version) {
	h.sentAt, h.sent = now, v
	h.sends++
}

func (h *history) ack(now time.Time, v Version) {
	h.ackedAt, h.acked = now, v
	h.acks++
}

func (h *history) nack(now time.Time, reason string) {
	h.nackedAt, h.reason = now, reason
	h.nacks++
}

// State is a subscriber's state of a type.
type State string

// The states. The JSON of the admin API keeps its older words for an ACK and a NACK.
const (
	ACKed   State = "accepted" // the newest response was ACKed
	Waiting State = "waiting"  // the newest response is not answered yet
	NACKed  State = "refused"  // the newest response was NACKed, or a due resource cannot be sent
	Idle    State = "idle"     // requested, and there was nothing to send
)

// TypeStatus is the status of a type for a subscriber.
type TypeStatus struct {
	Type       string
	State      State
	Since      time.Time // when the state began
	Reason     string
	Sent       string // version of the newest response
	ACKed      string // version of the newest response that was ACKed
	Subscribed int    // names asked for; -1 for everything
	Held       int    // number of resources sent and held
	Pending    int    // names that wait to be looked at
	// Responses that were sent, ACKed and NACKed.
	Responses, ACKs, NACKs int
	LastNACK               time.Time // zero if there was none
	NACKReason             string    // of the last one
}

// ClientStatus is one subscriber as the admin API shows it.
type ClientStatus struct {
	Info
	Client Client
	// Scope names the scope that narrows its view; empty if none does.
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

// Len returns the number of subscribers.
func (e *Engine) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subscribers)
}

// SubscribedBytes returns the length of all names of a type that the subscriber asks for.
// It visits each name.
func (s *Subscriber) SubscribedBytes(t Type) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		for name := range i.allNamed {
			n += len(name)
		}
	}
	return n
}

// Subscribed returns the number of names of a type that the subscriber asks for.
func (s *Subscriber) Subscribed(t Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.asked
	}
	return 0
}

// NACKs returns the number of responses of a type that the subscriber has NACKed. An answer
// to a response that was never sent, or was answered before, does not count.
func (s *Subscriber) NACKs(t Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.record.nacks
	}
	return 0
}

func (s *Subscriber) status() ClientStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := ClientStatus{Info: s.Info, Client: s.client}
	table := s.engine.table.Load()
	for i := range s.interests {
		if scoped, ok := i.scope().(fmt.Stringer); ok {
			c.Scope = scoped.String()
		}
		shown := i.status(table.types[i.t].Name)
		shown.Pending += i.markedBeside()
		c.Types = append(c.Types, shown)
	}
	return c
}

// Scoped is a view that a scope narrows.
type Scoped interface {
	// Scope returns the scope that narrows the view; nil if there is none.
	Scope() fmt.Stringer
}

func (i *interest) scope() any {
	if i.view == nil {
		return nil
	}
	if v, ok := i.view.View.(Scoped); ok {
		return v.Scope()
	}
	return nil
}

func (i *interest) status(name string) TypeStatus {
	h := &i.record
	out := TypeStatus{
		Type: name, State: Idle, Since: h.since, Subscribed: i.asked,
		Held: i.held.n, Pending: i.waiting() + len(i.waits.names),
		Responses: h.sends, ACKs: h.acks, NACKs: h.nacks, LastNACK: h.nackedAt, NACKReason: h.reason,
	}
	if i.wildcard {
		out.Subscribed = -1
	}
	if !h.sentAt.IsZero() {
		out.Sent = h.sent.String()
	}
	if !h.ackedAt.IsZero() {
		out.ACKed = h.acked.String()
	}
	switch {
	case i.withheld.reason != "":
		out.State, out.Since, out.Reason = NACKed, i.withheld.since, i.withheld.reason
	case len(i.flights) > 0:
		out.State, out.Since, out.Reason = Waiting, i.flights[0].waits, i.newest().reason()
	case h.nackedAt.After(h.ackedAt) && (len(i.nacked) > 0 || h.unnamed): // otherwise every NACKed name is gone
		out.State, out.Since, out.Reason = NACKed, h.nackedAt, h.reason
	case !h.ackedAt.IsZero():
		out.State, out.Since = ACKed, h.ackedAt
	case i.guard:
		out.Reason = "it keeps what it had before it connected until every source has been listed; 'isthmus sources' shows which has not"
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

// typeCounters count the sent responses, resources and bytes of a type, and its NACKs.
type typeCounters struct{ responses, resources, bytes, nacks atomic.Uint64 }

func (c *typeCounters) sent(resources, bytes int) {
	c.responses.Add(1)
	c.resources.Add(uint64(resources)) //nolint:gosec // a length is not negative
	c.bytes.Add(uint64(bytes))         //nolint:gosec // as above
}

// Count is the amount that an engine sent of a type since its start.
type Count struct {
	Type                               string
	Responses, Resources, Bytes, NACKs uint64
}

// Counts returns the counts by type, in the order of delivery. The counts of an admitted
// type end some time after its release.
func (e *Engine) Counts() []Count {
	e.mu.Lock()
	defer e.mu.Unlock()
	table, now := e.table.Load(), time.Now()
	counts := make([]Count, 0, len(table.Order))
	for _, t := range table.Order {
		info := table.types[t]
		if info.admitted.expired(now) {
			continue
		}
		c := info.counts
		counts = append(counts, Count{info.Name, c.responses.Load(), c.resources.Load(), c.bytes.Load(), c.nacks.Load()})
	}
	return counts
}
