package push

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// ResourceStatus is the state of one resource for a subscriber.
type ResourceStatus struct {
	Name    string
	Version string // the held version; empty if none is held, or the version is unknown
	State   State
	Reason  string
	Since   time.Time // when the state began; for an ACKed resource, when the version was made here
	Pending bool      // waits to be considered: a newer version may exist
}

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
		if status, ok := i.resource(name); ok {
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
	table := slices.Clone(i.held.list)
	others = make([]string, 0, len(i.lacks.names)+len(i.removed))
	for name := range i.lacks.names {
		others = append(others, name)
	}
	for name := range i.removed {
		others = append(others, name)
	}
	return func(yield func(string) bool) {
		for _, h := range table {
			if h.Label != nil && !yield(h.Name) {
				return
			}
		}
	}, others
}

// resource returns the status of a name; ok is false if the subscriber has no state for it.
func (i *interest) resource(name string) (status ResourceStatus, ok bool) {
	status = ResourceStatus{Name: name}
	_, status.Pending = i.coming(name)
	n, nacked := i.nacked[name]
	status.Pending = status.Pending || n.again
	h := i.holding(name)
	by, removed := i.removed[name]
	switch {
	case h != nil:
		i.describe(&status, h)
		by = uint64(h.serial)
	case !removed && !i.lacks.has(name):
		return status, false
	default:
		i.describeLack(&status)
	}
	switch f := i.flightOf(by); {
	case f != nil && (removed || h != nil && h.known == sent):
		status.State, status.Since, status.Reason = Waiting, f.waits, f.reason()
		if removed {
			status.Reason = "it is removed: " + status.Reason
		}
	case nacked:
		status.State, status.Since, status.Reason = NACKed, n.at, n.reason
	}
	return status, true
}

// describe fills in the status of a held resource, apart from awaited answers.
func (i *interest) describe(status *ResourceStatus, h *holding) {
	status.State, status.Since = ACKed, h.Made
	if h.Version != (Version{}) {
		status.Version = h.Version.String()
	}
	switch h.known {
	case claimed:
		status.Reason = "it held this when it connected, which is not compared yet"
	case confirmed:
		status.Reason = "it held this when it connected"
	case unsure:
		status.State, status.Since, status.Reason = NACKed, i.record.nackedAt, i.record.reason
	case sent:
	}
}

func (i *interest) describeLack(status *ResourceStatus) {
	status.State, status.Since = Idle, i.record.since
	status.Reason = "there is nothing of this name for the client"
	if status.Pending || len(i.fresh) > 0 {
		status.Reason = "the name is not looked at yet"
	}
}

// flightOf returns the unanswered response with a serial; nil if it was answered.
func (i *interest) flightOf(by uint64) *flight {
	for _, f := range i.flights {
		if serialOf(f.serial) == serialOf(by) {
			return f
		}
	}
	return nil
}
