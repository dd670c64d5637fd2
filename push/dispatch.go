package push

import (
	"context"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
)

// sweepEvery bounds how long an encoding outlives the last interest in it.
const sweepEvery = 10 * time.Minute

// Cases: ctx ends; the cache is due for a sweep; a producer has published; the debounce of
// some changes ends.
func (e *Engine) dispatchAll(ctx context.Context) {
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
		e.take(func() { next = e.dispatchDue() })
		debounced.Reset(next)
	}
}

// dispatch makes a world its producer's current one, and then marks the names that
// it changed. In this order no change is lost: see the package comment. The worlds
// are asked before the step, while no lock is held.
func (e *Engine) dispatch(p *Producer, u Update) {
	if p.world.Load() == nil {
		e.begin(p, u)
		return
	}
	var s *impact
	planned := e.reader.Attempt(PanicStep, "a step", func() { s = e.impactOf(p, u) })
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
		d.lane.hold(old, e.steps, d.name, d.change, u.Committed, now)
	}
	if s.completes || free {
		for s := range e.all() {
			s.recheck.Store(true)
			e.queue.add(s, false)
		}
	}
}

// begin opens the types of a producer that has published its first world.
func (e *Engine) begin(p *Producer, first Update) {
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
		e.queue.add(s, false)
	}
}

// mark records a change of a resource for every affected subscriber. The caller holds the
// engine's step.
func (e *Engine) mark(q question) {
	e.reader.Forget(q.gone)
	e.asked++
	for _, a := range q.answers {
		a.view.asked, a.view.affected = e.asked, a.affected
	}
	p := session.Pending{Urgent: q.change.urgent, Revoked: q.change.revoked, Since: q.since}
	e.index.concerned(q.target, func(i *interest) {
		if i.view.asked == e.asked && !i.view.affected {
			return
		}
		if i.marks.add(q.name, p) {
			e.queue.add(i.subscriber, q.change.urgent)
		}
	})
}

// dispatchDue marks the changes with an expired debounce, and returns the time until the
// next debounce ends.
func (e *Engine) dispatchDue() time.Duration {
	next := sweepEvery
	now := time.Now()
	e.table.Load().eachLane(func(info *typeInfo, m Mode, l *lane) {
		at, waits := l.due()
		switch {
		case !waits:
		case at.After(now):
			next = min(next, at.Sub(now))
		default:
			e.release(info, m, l)
		}
	})
	return next
}

// release marks the changes that a debounce class held back. Removals may have waited for
// these changes, so subscribers with such removals get a turn.
func (e *Engine) release(info *typeInfo, m Mode, from *lane) {
	now := *info.producer.world.Load()
	questions := make([]question, 0, len(from.changed))
	for name, c := range from.changed {
		questions = append(questions, e.ask(info, m, from.before, now, name, c, from.since))
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
			e.queue.add(s, false)
		}
	}
}

// makeReviewed makes subscribers recompute their views where a step may have changed them.
// It visits only the subscribers that the audience keys reach. A subscriber that connected
// after the plan was made recomputes its views as well.
func (e *Engine) makeReviewed(s *impact) {
	for _, t := range s.reviewed {
		e.index.reached(t, s.keys, func(i *interest) {
			if i.reviewed == s.number && !i.moved {
				return
			}
			i.subscriber.review.Store(true)
			e.queue.add(i.subscriber, false)
		})
	}
}
