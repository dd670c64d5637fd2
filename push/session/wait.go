package session

import "github.com/isthmus-mesh/isthmus/push/world"

// wait is why a pending name cannot be sent yet. The name is not considered before its
// obstacle is gone.
type wait struct {
	Pending
	gone  bool // a removal, which waits for the types that may refer to it to be settled
	lacks bool // the first full set waits for it
}

// waits are the waiting names of a type.
type waits struct {
	names map[string]wait
	steps map[uint64]map[string]struct{} // the removals among them, by the step at which they were found gone
	// keeping is the number of names that are not held back by a NACK alone. While there are
	// any, the type is covered no further.
	keeping int
	lacking int // number of names that the first full set waits for
}

func (s *waits) put(name string, w wait) {
	if s.names == nil {
		s.names = map[string]wait{}
	}
	s.names[name] = w
	s.count(w, 1)
	if !w.gone {
		return
	}
	if s.steps == nil {
		s.steps = map[uint64]map[string]struct{}{}
	}
	if s.steps[w.step] == nil {
		s.steps[w.step] = map[string]struct{}{}
	}
	s.steps[w.step][name] = struct{}{}
}

// take removes a waiting name; ok is false if it did not wait.
func (s *waits) take(name string) (w wait, ok bool) {
	if w, ok = s.names[name]; !ok {
		return w, false
	}
	s.count(w, -1)
	if delete(s.names, name); len(s.names) == 0 {
		s.names = nil // a map never shrinks
	}
	if !w.gone {
		return w, true
	}
	if delete(s.steps[w.step], name); len(s.steps[w.step]) == 0 {
		delete(s.steps, w.step)
	}
	return w, true
}

func (s *waits) count(w wait, by int) {
	if !w.nacked {
		s.keeping += by
	}
	if w.lacks {
		s.lacking += by
	}
}

// waiter is a waiting name of one type on the stream.
type waiter struct {
	t    world.Type
	name string
}

// waiters are names that wait for the same obstacle. Nearly always there is one. Some may
// have another obstacle by now, or be gone: to rouse one too many costs a look at it.
type waiters struct {
	some bool   // otherwise there is none
	one  waiter // the first
	more map[waiter]struct{}
}

func (w *waiters) add(x waiter) {
	switch {
	case !w.some:
		w.one, w.some = x, true
	case w.one == x:
	case w.more == nil:
		w.more = map[waiter]struct{}{x: {}}
	default:
		w.more[x] = struct{}{}
	}
}

func (w *waiters) rouse(to *roused) {
	if w.some {
		to.names = append(to.names, w.one)
	}
	for x := range w.more {
		to.names = append(to.names, x)
	}
	*w = waiters{}
}

func (w *waiters) size() (n int) {
	if w.some {
		n = 1
	}
	return n + len(w.more)
}

// roused is what the stream has to make pending again: see [Stream.deliver].
type roused struct {
	names    []waiter // names whose obstacle is gone
	removals bool     // a type is settled further: removals may wait for that
}
