package push

import "math"

// wait is why a pending name cannot be sent yet. The name is not considered before its
// obstacle is gone.
type wait struct {
	pending
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
	*interest
	name string
}

// waiters are names that wait for the same obstacle. Nearly always there is one. Some may
// have another obstacle by now, or be gone: rousing one too many costs a look at it.
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

// rouse makes a name pending again, if it still waits.
func (x waiter) rouse() {
	if _, ok := x.waits.names[x.name]; ok {
		x.want(x.name, pending{})
	}
}

// obstacle is the event that a name waits for: the answer to a response, or otherwise the
// next event of a name of another type. The zero obstacle is none.
type obstacle struct {
	response *waiters
	of       *interest
	name     string
}

// keep makes a name wait for an obstacle.
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

// stir makes the names pending that wait for a name of this type.
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

// stirUnlisted stirs all names that are neither pending nor waiting, once every requested
// name has been listed.
func (i *interest) stirUnlisted() {
	for name := range i.behind {
		if _, coming := i.coming(name); !coming {
			i.stir(name)
		}
	}
}

// coming returns why a name is to be considered, now or after its wait.
func (i *interest) coming(name string) (p pending, ok bool) {
	if p, ok = i.pending[name]; ok {
		return p, true
	}
	w, ok := i.waits.names[name]
	return w.pending, ok
}

// wait moves a pending name to the waiting ones.
func (i *interest) wait(name string, w wait) {
	delete(i.pending, name)
	i.waits.put(name, w)
}

// settle records that everything up to a step was sent and answered. Removals of other
// types may wait for that.
func (i *interest) settle(step uint64) {
	if step <= i.settled {
		return
	}
	i.settled = step
	i.subscriber.rouseRemovals()
}

// rouseRemovals makes the removals of every type pending to which nothing may refer any
// longer.
func (s *Subscriber) rouseRemovals() {
	for i := range s.interests {
		if len(i.waits.steps) > 0 {
			i.rouseRemovals()
		}
	}
}

// rouseRemovals makes the removals pending to which nothing may refer any longer.
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

// referrersSettled returns the step up to which all types that may refer to this one are
// settled. A guarded type does not count: nothing is sent to it, for an unlimited time.
func (i *interest) referrersSettled() uint64 {
	settled := uint64(math.MaxUint64)
	for _, t := range i.subscriber.engine.table.Load().types[i.t].Referrers {
		if other := i.subscriber.interest(t); other != nil && !other.guard {
			settled = min(settled, other.settled)
		}
	}
	return settled
}
