package push

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
)

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
		for name := range i.state.AllNamed {
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
		return i.state.Asked()
	}
	return 0
}

// NACKs returns the number of responses of a type that the subscriber has NACKed. An answer
// to a response that was never sent, or was answered before, does not count.
func (s *Subscriber) NACKs(t Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.state.NACKs()
	}
	return 0
}

func (s *Subscriber) status() ClientStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := ClientStatus{Info: s.Info, Client: s.client}
	for i := range s.interests {
		if scoped, ok := i.scope().(fmt.Stringer); ok {
			c.Scope = scoped.String()
		}
		shown := session.StatusOf(i.state)
		shown.Pending += i.marks.beside(i.state)
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
