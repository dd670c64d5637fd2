package push

import "math"

// wait is why a name is to be looked at that cannot be sent yet. Until what it waits for
// has come, nobody looks at it.
type wait struct {
	pending
	gone  bool // it is a removal, and waits for the types that may refer to it to be settled
	lacks bool // the first full set waits for it
}

// waits are the names of a type that wait.
type waits struct {
	names map[string]wait
	steps map[uint64]map[string]struct{} // the removals among them, by the step at which they were found gone
	// keeping is how many of them are not kept back by a NACK alone. While there are any,
	// the type is covered no further.
	keeping int
	lacking int // how many the first full set waits for
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

// take has a name wait no longer; ok is false if it did not.
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

// waiter is a name that waits, of one type on the stream.
type waiter struct {
	*interest
	name string
}

// waiters are names that wait for the same. Nearly always there is one. Some may wait
// for something else by now, or be gone: to rouse one too many costs a look at it.
type waiters struct {
	one  waiter // zero if there is none
	more map[waiter]struct{}
}

func (w *waiters) add(x waiter) {
	switch {
	case w.one == waiter{}:
		w.one = x
	case w.one == x:
	case w.more == nil:
		w.more = map[waiter]struct{}{x: {}}
	default:
		w.more[x] = struct{}{}
	}
}

func (w *waiters) rouse() {
	was := *w
	*w = waiters{}
	if was.one.interest != nil {
		was.one.rouse()
	}
	for x := range was.more {
		x.rouse()
	}
}

// rouse has a name looked at again, if it still waits.
func (x waiter) rouse() {
	if _, ok := x.waits.names[x.name]; ok {
		x.want(x.name, pending{})
	}
}

// obstacle is what a name waits for: the answer to a response, or else whatever is next
// with a name of another type. The zero obstacle is none.
type obstacle struct {
	response *waiters
	of       *interest
	name     string
}

// keep has a name wait for an obstacle.
func (o obstacle) keep(x waiter) {
	if o.response != nil {
		o.response.add(x)
		return
	}
	if o.of.behind == nil {
		o.of.behind = map[string]waiters{}
	}
	w := o.of.behind[o.name]
	w.add(x)
	o.of.behind[o.name] = w
}

// stir has the names looked at again that wait for a name of this type.
func (i *interest) stir(name string) {
	w, ok := i.behind[name]
	if !ok {
		return
	}
	if delete(i.behind, name); len(i.behind) == 0 {
		i.behind = nil
	}
	w.rouse()
}

// stirUnlisted does so for all names that are not on the list of those to look at, once
// everything is on it that was asked for.
func (i *interest) stirUnlisted() {
	for name := range i.behind {
		if _, coming := i.coming(name); !coming {
			i.stir(name)
		}
	}
}

// coming returns why a name is to be looked at, now or once it waits no longer.
func (i *interest) coming(name string) (p pending, ok bool) {
	if p, ok = i.pending[name]; ok {
		return p, true
	}
	w, ok := i.waits.names[name]
	return w.pending, ok
}

// wait has a pending name wait.
func (i *interest) wait(name string, w wait) {
	delete(i.pending, name)
	i.waits.put(name, w)
}

// settle notes that everything up to a step was sent and answered. Removals of other
// types may wait for that.
func (i *interest) settle(step uint64) {
	if step <= i.settled {
		return
	}
	i.settled = step
	i.subscriber.rouseRemovals()
}

// rouseRemovals has the removals of every type looked at to which nothing may refer any
// longer.
func (s *Subscriber) rouseRemovals() {
	for i := range s.interests {
		if len(i.waits.steps) > 0 {
			i.rouseRemovals()
		}
	}
}

// rouseRemovals has the removals looked at to which nothing may refer any longer.
func (i *interest) rouseRemovals() {
	settled := i.referrersSettled()
	for step, names := range i.waits.steps {
		if step > settled {
			continue
		}
		for name := range names {
			i.want(name, pending{})
		}
	}
}

// referrersSettled is the step up to which all types that may refer to this one are
// settled. A guarded type is none of them: it is sent nothing, for as long as it takes.
func (i *interest) referrersSettled() uint64 {
	settled := uint64(math.MaxUint64)
	for _, t := range i.subscriber.engine.table.Load().types[i.t].referrers {
		if other := i.subscriber.interest(t); other != nil && !other.guard {
			settled = min(settled, other.settled)
		}
	}
	return settled
}
