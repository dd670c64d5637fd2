package controller

import (
	"container/heap"
	"time"
)

// Priority orders the keys that wait for a worker.
type Priority int

// The priorities. A key that is added with both gets the higher one.
const (
	Low Priority = iota
	High
)

// fairness is the number of High keys in a row after which a Low key goes first. So a
// system that always changes is still repaired.
const fairness = 16

// viewWait bounds the wait for the view after a write. Then the key is reconciled again.
const viewWait = 10 * time.Second

// phase is the phase of a key in the queue.
type phase int

const (
	ready     phase = iota // waits for a worker
	delayed                // waits for a time, after a failure or for [Outcome.After]
	running                // is being reconciled
	awaiting               // has written, and waits for the view
	throttled              // waits for a permit
)

// entry is the state of one key in the queue. A reconciled key has none.
type entry[K comparable] struct {
	key      K
	phase    phase
	priority Priority
	since    time.Time // arrival of the oldest change that is not reconciled
	ticket   int       // of its newest position in a list; older positions are void

	changed         bool // since the reconciler was started
	changedSince    time.Time
	changedPriority Priority

	failures    int
	err         error
	failedSince time.Time
	fixed       bool      // at is fixed: a change does not shorten the wait
	at          time.Time // end of the wait, when delayed or awaiting
	await       func() bool

	unfinished     bool // it needs a permit for the rest of its work
	urgency        Urgency
	throttledSince time.Time // when it first lacked a permit since its last one
	rank, slot     int       // in permits, when throttled
}

// position is a key's position in a list. It is void once the key has a newer one.
type position[K comparable] struct {
	entry  *entry[K]
	ticket int
}

func (p position[K]) void() bool { return p.entry.ticket != p.ticket }

// queue decides which key is reconciled when. It has one owner, which passes in the time.
type queue[K comparable] struct {
	entries map[K]*entry[K]
	ready   [High + 1][]position[K]
	timed   timeline[K]
	picks   int // keys of High priority in a row
	permits permits[K]
}

func newQueue[K comparable]() *queue[K] { return &queue[K]{entries: map[K]*entry[K]{}} }

// add adds a key to reconcile.
func (q *queue[K]) add(key K, p Priority, now time.Time) {
	e := q.entries[key]
	if e == nil {
		e = &entry[K]{key: key, since: now}
		q.entries[key] = e
		q.enqueue(e, p)
		return
	}
	switch e.phase {
	case ready:
		if p > e.priority {
			q.enqueue(e, p)
		}
	case throttled:
		// Its remaining work may be more urgent now, or unnecessary.
		if p == High {
			q.unthrottle(e)
			q.enqueue(e, p)
		}
	case delayed:
		// The change may fix the failure, so the key is tried at once.
		if p == High && !e.fixed {
			q.enqueue(e, p)
		}
	case running, awaiting:
		if !e.changed {
			e.changed, e.changedSince, e.changedPriority = true, now, p
		}
		e.changedPriority = max(e.changedPriority, p)
	}
}

// enqueue puts a key at the end of the queue for workers.
func (q *queue[K]) enqueue(e *entry[K], p Priority) {
	e.phase, e.priority, e.fixed, e.await = ready, p, false, nil
	e.ticket++
	q.ready[p] = append(q.ready[p], position[K]{e, e.ticket})
}

// delay makes a key wait until a time.
func (q *queue[K]) delay(e *entry[K], p phase, at time.Time) {
	e.phase, e.at = p, at
	e.ticket++
	heap.Push(&q.timed, position[K]{e, e.ticket})
}

// next returns the key to reconcile now. Otherwise it returns when there may be one; zero
// if only a change can bring one.
func (q *queue[K]) next(now time.Time) (key K, ok bool, at time.Time) {
	at = q.promote(now)
	first, second := High, Low
	if q.picks >= fairness {
		first, second = Low, High
	}
	for _, p := range []Priority{first, second} {
		if e := q.take(p); e != nil {
			if q.picks++; p == Low {
				q.picks = 0
			}
			e.phase = running
			e.ticket++
			return e.key, true, at
		}
	}
	return key, false, at
}

// promote enqueues the keys whose wait is over, and returns the end of the next wait.
func (q *queue[K]) promote(now time.Time) time.Time {
	for len(q.timed) > 0 {
		first := q.timed[0]
		switch e := first.entry; {
		case first.void():
		case e.at.After(now):
			return e.at
		case e.phase == awaiting:
			q.expire(e, now)
		default:
			q.enqueue(e, Low)
		}
		heap.Pop(&q.timed)
	}
	return time.Time{}
}

// take removes the first ready key of a priority; nil if there is none.
func (q *queue[K]) take(p Priority) *entry[K] {
	for len(q.ready[p]) > 0 {
		first := q.ready[p][0]
		q.ready[p][0] = position[K]{}
		q.ready[p] = q.ready[p][1:]
		if !first.void() {
			return first.entry
		}
	}
	return nil
}

// done records the outcome of a running key.
func (q *queue[K]) done(key K, o Outcome, err error, random float64, now time.Time) {
	e := q.entries[key]
	if err != nil {
		q.failed(e, err, random, now)
		return
	}
	e.failures, e.err = 0, nil
	e.unfinished, e.urgency = o.Throttled, o.Urgency
	if !o.Throttled {
		e.throttledSince = time.Time{}
	} else if e.throttledSince.IsZero() {
		e.throttledSince = now
	}
	switch {
	case o.Await != nil:
		e.await = o.Await
		q.delay(e, awaiting, now.Add(viewWait))
	case e.changed:
		q.repeat(e)
	case e.unfinished:
		q.throttle(e)
	case o.After > 0:
		q.delay(e, delayed, now.Add(o.After))
		e.since = now
	default:
		delete(q.entries, key)
	}
}

func (q *queue[K]) failed(e *entry[K], err error, random float64, now time.Time) {
	if e.failures++; e.failures == 1 {
		e.failedSince = now
	}
	e.err = err
	after, fixed := pause(err, e.failures, random)
	outdated := e.changed && e.changedPriority == High && !fixed && e.failures == 1
	e.changed = false
	if outdated { // it failed for a desired state that has changed
		q.enqueue(e, High)
		return
	}
	q.delay(e, delayed, now.Add(after))
	e.fixed = fixed
}

// awaited returns the condition that a key awaits, with its ticket; nil if it awaits none.
func (q *queue[K]) awaited(key K) (await func() bool, ticket int) {
	if e := q.entries[key]; e != nil && e.phase == awaiting {
		return e.await, e.ticket
	}
	return nil, 0
}

// seen ends the wait of a ticket: the view shows the write.
func (q *queue[K]) seen(key K, ticket int) {
	if e := q.entries[key]; e != nil && e.phase == awaiting && e.ticket == ticket {
		q.endAwait(e)
	}
}

// endAwait ends the wait for the view.
func (q *queue[K]) endAwait(e *entry[K]) {
	switch {
	case e.changed:
		q.repeat(e)
	case e.unfinished:
		q.throttle(e)
	default:
		e.ticket++
		delete(q.entries, e.key)
	}
}

// expire ends an overdue wait for the view, and reconciles the key again. The written object
// may have been deleted before the view saw it, and then no event would ever come.
func (q *queue[K]) expire(e *entry[K], now time.Time) {
	if !e.changed {
		e.changed, e.changedSince, e.changedPriority = true, now, Low
	}
	q.repeat(e)
}

// repeat enqueues a key that has changed while it was running or awaiting.
func (q *queue[K]) repeat(e *entry[K]) {
	e.changed, e.since = false, e.changedSince
	q.enqueue(e, e.changedPriority)
}

// timeline is a heap of positions by time.
type timeline[K comparable] []position[K]

func (t timeline[K]) Len() int           { return len(t) }
func (t timeline[K]) Less(i, j int) bool { return t[i].entry.at.Before(t[j].entry.at) }
func (t timeline[K]) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline[K]) Push(x any)        { *t = append(*t, x.(position[K])) }
func (t *timeline[K]) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = position[K]{}
	*t = old[:len(old)-1]
	return last
}
