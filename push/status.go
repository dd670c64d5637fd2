package push

import (
	"fmt"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// SubscribedBytes returns the length of all names of a type that the subscriber asks for.
// It visits each name.
func (s *Subscriber) SubscribedBytes(t world.Type) (n int) {
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
func (s *Subscriber) Subscribed(t world.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.state.Asked()
	}
	return 0
}

// NACKs returns the number of responses of a type that the subscriber has NACKed. An answer
// to a response that was never sent, or was answered before, does not count.
func (s *Subscriber) NACKs(t world.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interest(t); i != nil {
		return i.state.NACKs()
	}
	return 0
}

// Client returns the description of the subscriber.
func (s *Subscriber) Client() world.Client { return s.client }

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

func (i *interest) scope() any {
	if i.View() == nil {
		return nil
	}
	if v, ok := i.View().View.(world.Scoped); ok {
		return v.Scope()
	}
	return nil
}

// TypeNames returns the types that the subscriber has asked for, in order.
func (s *Subscriber) TypeNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for i := range s.interests {
		names = append(names, s.engine.table.Load().types[i.Type].Name)
	}
	slices.Sort(names)
	return names
}

// Resource returns the state of one resource for the subscriber; ok is false if it neither
// holds the resource nor asks for it.
func (s *Subscriber) Resource(typeName, name string) (status session.ResourceStatus, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interestNamed(typeName)
	if i == nil {
		return session.ResourceStatus{}, false
	}
	return session.ResourceOf(i.state, name)
}

// Resources lists the resources that the subscriber holds of a type, and the names that it
// asks for. The list has at most limit names after a name, in order. If more follow, next
// is the last listed name; otherwise it is empty.
//
// The subscriber is locked only to copy its table of held resources, and then to read the
// listed names. Its state may change in between: each name is shown as it is when it is
// read.
func (s *Subscriber) Resources(typeName, after string, limit int) (list []session.ResourceStatus, next string) {
	names, more := s.namesBehind(typeName, after, limit)
	if more {
		next = names[len(names)-1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interestNamed(typeName)
	if i == nil {
		return nil, ""
	}
	for _, name := range names {
		if status, ok := session.ResourceOf(i.state, name); ok {
			list = append(list, status)
		}
	}
	return list, next
}

// interestNamed returns the interest in a type; nil if it was not asked for.
func (s *Subscriber) interestNamed(typeName string) *interest {
	for i := range s.interests {
		if s.engine.table.Load().types[i.Type].Name == typeName {
			return i
		}
	}
	return nil
}

// namesBehind returns the first names after a name. They are sorted without the lock, and
// only as many of them as may be among the first.
func (s *Subscriber) namesBehind(typeName, after string, limit int) (names []string, more bool) {
	held, others := s.copyNames(typeName)
	last := "" // no later name is among the first; empty until there are too many
	enter := func(name string) {
		if name <= after || last != "" && name > last {
			return
		}
		if names = append(names, name); len(names) > 2*limit {
			names, last = firstOf(names, limit+1)
		}
	}
	for name := range held {
		enter(name)
	}
	for _, name := range others {
		enter(name)
	}
	names, _ = firstOf(names, limit+1)
	n := min(limit, len(names))
	return names[:n], n < len(names)
}

// firstOf returns the first n names, sorted and without duplicates. last is the n-th of
// them, if there are as many.
func firstOf(names []string, n int) (first []string, last string) {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < n {
		return names, ""
	}
	return names[:n], names[n-1]
}

// copyNames returns the names of a type that the subscriber holds, and the other names that
// it asks for or is about to lose.
func (s *Subscriber) copyNames(typeName string) (held iter.Seq[string], others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interestNamed(typeName)
	if i == nil {
		return func(func(string) bool) {}, nil
	}
	return session.CopyNames(i.state)
}
