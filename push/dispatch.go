package push

import (
	"context"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// sweepEvery bounds how long an encoding outlives the last interest in it.
const sweepEvery = 10 * time.Minute

// dispatcher makes steps from one world to the next: it finds the subscribers that a change
// concerns, and marks the changed names for them. One goroutine runs it.
type dispatcher struct {
	*core
	asked uint64 // number of questions to the index
}

// run makes steps until ctx ends.
//
// Cases: ctx ends; the cache is due for a sweep; a producer has published; the debounce of
// some changes ends.
func (e *dispatcher) run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	debounced := time.NewTimer(sweepEvery)
	defer debounced.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			e.reader.Sweep()
		case <-e.wake:
			for _, p := range e.producers {
				if u, ok := p.inbox.take(); ok {
					e.take(func() { e.dispatch(p, u) })
				}
			}
		case <-debounced.C:
		}
		next := time.Duration(0) // after a panic, at once
		e.take(func() { next = e.due() })
		debounced.Reset(next)
	}
}

// dispatch makes a world its producer's current one, and then marks the names that
// it changed. In this order no change is lost: see the package comment. The worlds
// are asked before the step, while no lock is held.
func (e *dispatcher) dispatch(p *Producer, u world.Update) {
	if p.world.Load() == nil {
		e.begin(p, u)
		return
	}
	var s *impact
	planned := e.reader.Attempt(world.PanicStep, "a step", func() { s = e.impactOf(p, u) })
	e.step.Lock()
	defer e.step.Unlock()
	e.steps++
	old := *p.world.Swap(&u.World)
	p.remembers = u.Remembers
	free := u.Waited && !p.waited
	p.waited = u.Waited
	if !planned { // the affected subscribers are unknown
		e.failAll()
		return
	}
	e.makeReviewed(s)
	for _, q := range s.questions {
		e.mark(q)
	}
	now := time.Now()
	for _, d := range s.debounced {
		d.class.delay(old, e.steps, d.name, d.change, u.Committed, now)
	}
	if s.completes || free {
		for s := range e.all() {
			s.recheck.Store(true)
			e.queue.Add(&s.place, false)
		}
	}
}

// begin opens the types of a producer that has published its first world.
func (e *dispatcher) begin(p *Producer, first world.Update) {
	e.step.Lock()
	defer e.step.Unlock()
	e.steps++
	p.world.Store(&first.World)
	p.remembers, p.waited = first.Remembers, first.Waited
	if !p.later && !slices.ContainsFunc(e.producers, func(other *Producer) bool { return other.world.Load() == nil && !other.later }) {
		close(e.primed)
	}
	for s := range e.all() {
		s.review.Store(true)
		e.queue.Add(&s.place, false)
	}
}

// mark records a change of a resource for every affected subscriber. The caller holds the
// engine's step.
func (e *dispatcher) mark(q question) {
	e.reader.Forget(q.gone)
	e.asked++
	for _, a := range q.answers {
		a.view.Asked, a.view.Affected = e.asked, a.affected
	}
	p := session.Pending{Urgent: q.change.urgent, Revoked: q.change.revoked, Since: q.since}
	e.index.Concerned(q.Target, func(of *index.Entry[*interest]) {
		if v := of.View(); v.Asked == e.asked && !v.Affected {
			return
		}
		i := of.Owner
		if i.marks.add(q.Name, p) {
			e.queue.Add(&i.subscriber.place, q.change.urgent)
		}
	})
}

// due marks the changes with an expired debounce, and returns the time until the
// next debounce ends.
func (e *dispatcher) due() time.Duration {
	next := sweepEvery
	now := time.Now()
	for _, c := range e.table.Load().classes {
		at, waits := c.due()
		switch {
		case !waits:
		case at.After(now):
			next = min(next, at.Sub(now))
		default:
			e.release(c)
		}
	}
	return next
}

// release marks the changes that a debounce class held back. Removals may have waited for
// these changes, so subscribers with such removals get a turn.
func (e *dispatcher) release(from *class) {
	info := e.table.Load().types[from.t]
	now := *info.producer.world.Load()
	questions := make([]question, 0, len(from.changed))
	for name, c := range from.changed {
		questions = append(questions, e.ask(info, from.mode, from.before, now, name, c, from.since))
	}
	e.step.Lock()
	defer e.step.Unlock()
	e.steps++
	from.clear()
	for _, q := range questions {
		e.mark(q)
	}
	for s := range e.all() {
		if s.delayed.Swap(false) {
			e.queue.Add(&s.place, false)
		}
	}
}

// makeReviewed makes subscribers recompute their views where a step may have changed them.
// It visits only the subscribers that the audience keys reach. A subscriber that connected
// after the plan was made recomputes its views as well.
func (e *dispatcher) makeReviewed(s *impact) {
	for _, t := range s.reviewed {
		e.index.Reached(t, s.keys, func(of *index.Entry[*interest]) {
			i := of.Owner
			if i.reviewed == s.number && !i.moved {
				return
			}
			i.subscriber.review.Store(true)
			e.queue.Add(&i.subscriber.place, false)
		})
	}
}

// take makes a step. If the step panics, the subscribers that it did not reach are unknown,
// so all of them are ended.
func (e *dispatcher) take(step func()) {
	if !e.reader.Attempt(world.PanicStep, "a step", step) {
		e.failAll()
	}
}
