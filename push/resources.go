package push

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/push/session"
)

// Streams returns the subscribers with an identifier, by age.
func (e *Engine) Streams(id string) []*Subscriber {
	var list []*Subscriber
	for s := range e.all() {
		if s.Info.ID == id {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *Subscriber) int {
		return cmp.Or(a.Info.Since.Compare(b.Info.Since), cmp.Compare(a.Info.Protocol, b.Info.Protocol))
	})
	return list
}

// TypeNames returns the types that the subscriber has asked for, in order.
func (s *Subscriber) TypeNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for i := range s.interests {
		names = append(names, s.engine.table.Load().types[i.t].Name)
	}
	slices.Sort(names)
	return names
}

// Resources lists the resources that the subscriber holds of a type, and the names that it
// asks for. The list has at most limit names after a name, in order. If more follow, next
// is the last listed name; otherwise it is empty.
//
// The subscriber is locked only to copy its table of held resources, and then to read the
// listed names. Its state may change in between: each name is shown as it is when it is
// read.
func (s *Subscriber) Resources(typeName, after string, limit int) (list []ResourceStatus, next string) {
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
		if s.engine.table.Load().types[i.t].Name == typeName {
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
