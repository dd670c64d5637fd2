package push

import (
	"context"
	"slices"
	"time"
)

// sweepEvery bounds how long an encoding outlives the last interest in it.
const sweepEvery = 10 * time.Minute

// dispatchAll waits for: the end, something published, the end of a debounce,
// the time to sweep the cache.
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
			e.cache.sweep()
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

// dispatch makes a world its producer's current one and marks what it changed.
// The order of the two is what loses nothing: see the package comment.
func (e *Engine) dispatch(p *Producer, u Update) {
	e.step.Lock()
	defer e.step.Unlock()
	e.steps++
	before := p.world.Swap(&u.World)
	if before == nil {
		e.begin()
		return
	}
	old, now := *before, u.World
	e.reviewAll(p, old, now, u.Reviewed)
	types := e.table.Load().types
	at := time.Now()
	for _, c := range u.Changed {
		info := types[p.Type(c.Row)]
		for m := range modes {
			what := change{audience: c.Audience, urgent: c.Urgent, revoked: c.Revoked}
			if l := info.lanes[m]; l != nil {
				l.hold(old, e.steps, c.Name, what, u.Committed, at)
			} else {
				e.mark(info, m, old, now, c.Name, what, u.Committed)
			}
		}
	}
	if now.Complete() && !old.Complete() {
		for s := range e.all() {
			s.recheck.Store(true)
			e.queue.add(s, false)
		}
	}
}

// begin opens the types of a producer that has published its first world.
func (e *Engine) begin() {
	if !slices.ContainsFunc(e.producers, func(other *Producer) bool { return other.world.Load() == nil }) {
		close(e.primed)
	}
	for s := range e.all() {
		s.review.Store(true)
		e.queue.add(s, false)
	}
}

// mark notes a change of a resource for everyone whom it concerns. One that
// changed there and back while it waited concerns whoever was sent it between.
func (e *Engine) mark(info *typeInfo, m Mode, old, now World, name string, c change, since time.Time) {
	affected := func(v View) bool {
		was, had, bad := e.find(old, v, info.row, name)
		is, has, worse := e.find(now, v, info.row, name)
		return bad || worse || c.again || had != has || was != is // to mark one too many costs a comparison
	}
	e.asked++
	p := pending{urgent: c.urgent, revoked: c.revoked, since: since}
	e.index.concerned(e.asked, info.producer.Type(info.row), m, name, c.audience, affected, func(i *interest) {
		if i.mark(name, p) {
			e.queue.add(i.subscriber, c.urgent)
		}
	})
}

// dispatchDue marks what has waited for long enough, and returns how long it is
// until something else has.
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

// release marks what a lane held back, for which removals may have waited.
func (e *Engine) release(info *typeInfo, m Mode, from *lane) {
	e.step.Lock()
	defer e.step.Unlock()
	e.steps++
	l, now := from.take(), *info.producer.world.Load()
	for name, c := range l.changed {
		e.mark(info, m, l.before, now, name, c, l.since)
	}
	for s := range e.all() {
		if s.delayed.Swap(false) {
			e.queue.add(s, false)
		}
	}
}

// reviewAll has subscribers find out what they see, where a step may have
// changed that. Only those whom the audience keys reach are asked.
func (e *Engine) reviewAll(p *Producer, old, now World, keys []string) {
	if len(keys) == 0 {
		return
	}
	if slices.Contains(keys, "*") {
		keys = nil
	}
	for t, info := range e.table.Load().types {
		if info.producer != p {
			continue
		}
		changed := func(i *interest) (changed bool) {
			s := i.subscriber
			if !e.panics.attempt(PanicStream, "client "+s.Info.ID, func() { changed = old.View(info.row, s.client) != now.View(info.row, s.client) }) {
				e.fail(s)
			}
			return changed
		}
		e.index.reviewed(Type(t), keys, changed, func(i *interest) {
			i.subscriber.review.Store(true)
			e.queue.add(i.subscriber, false)
		})
	}
}
