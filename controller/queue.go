package controller

import (
	"container/heap"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// Priority says which of two waiting keys goes first.
type Priority int

// The priorities. A key that is added with both has the higher one.
const (
	Low Priority = iota
	High
)

// fairness is how often a key of low priority goes first although others of
// high priority wait, so that a system which always changes is still repaired.
const fairness = 16

// standing is where a key is on its way.
type standing int

const (
	ready     standing = iota // waits for a worker
	delayed                   // waits for its time, having failed or having been asked to
	running                   // is being reconciled
	awaiting                  // has written, and waits for the view
	throttled                 // has something to do, and waits for a permit
)

// entry is what the queue knows of one key. Keys that are in order have none.
type entry[K comparable] struct {
	key      K
	standing standing
	priority Priority
	since    time.Time // when the oldest change came that has not been reconciled
	ticket   int       // of its newest place in a list; older places are void

	again         bool // something changed since the reconciler was started
	againSince    time.Time
	againPriority Priority

	failures    int
	err         error
	failedSince time.Time
	firm        bool      // not before its time, whatever changes
	at          time.Time // when delayed or awaiting: until then
	await       func() bool

	more           bool // what is awaited was not all: it needs a permit for the rest
	urgency        Urgency
	throttledSince time.Time // when it first lacked a permit, since it had one
	rank, slot     int       // where it stands when throttled
}

// place is a key's place in a list. It is void once the key got another one.
type place[K comparable] struct {
	entry  *entry[K]
	ticket int
}

func (p place[K]) void() bool { return p.entry.ticket != p.ticket }

// queue decides which key is reconciled when. It has one owner, which passes the time in.
type queue[K comparable] struct {
	backoff  wait.Backoff
	outage   wait.Backoff  // of what is temporary
	viewWait time.Duration // how long a key waits for the view at most

	entries map[K]*entry[K]
	ready   [High + 1][]place[K]
	timed   timeline[K]
	picks   int // of keys of high priority in a row
	permits permits[K]
}

func newQueue[K comparable](b, outage wait.Backoff, viewWait time.Duration) *queue[K] {
	return &queue[K]{backoff: b, outage: outage, viewWait: viewWait, entries: map[K]*entry[K]{}}
}

// add notes that a key may be out of order.
func (q *queue[K]) add(key K, p Priority, now time.Time) {
	e := q.entries[key]
	if e == nil {
		e = &entry[K]{key: key, since: now}
		q.entries[key] = e
		q.line(e, p)
		return
	}
	switch e.standing {
	case ready:
		if p > e.priority {
			q.line(e, p)
		}
	case throttled:
		// It may be more urgent now, or not needed any more.
		if p == High {
			q.unthrottle(e)
			q.line(e, p)
		}
	case delayed:
		// What changed may fix it, so it is worth a try at once.
		if p == High && !e.firm {
			q.line(e, p)
		}
	case running, awaiting:
		if !e.again {
			e.again, e.againSince, e.againPriority = true, now, p
		}
		e.againPriority = max(e.againPriority, p)
	}
}

// line puts a key at the end of those that wait for a worker.
func (q *queue[K]) line(e *entry[K], p Priority) {
	e.standing, e.priority, e.firm, e.await = ready, p, false, nil
	e.ticket++
	q.ready[p] = append(q.ready[p], place[K]{e, e.ticket})
}

// delay lets a key wait until a time.
func (q *queue[K]) delay(e *entry[K], s standing, at time.Time) {
	e.standing, e.at = s, at
	e.ticket++
	heap.Push(&q.timed, place[K]{e, e.ticket})
}

// next returns the key to reconcile now, or else when there may be one; the
// zero time means not before something happens.
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
			e.standing = running
			e.ticket++
			return e.key, true, at
		}
	}
	return key, false, at
}

// promote lines up the keys whose time has come, and returns when the next has.
func (q *queue[K]) promote(now time.Time) time.Time {
	for len(q.timed) > 0 {
		first := q.timed[0]
		switch e := first.entry; {
		case first.void():
		case e.at.After(now):
			return e.at
		case e.standing == awaiting:
			q.expire(e, now)
		default:
			q.line(e, Low)
		}
		heap.Pop(&q.timed)
	}
	return time.Time{}
}

// take removes the first key that waits with a priority; nil if there is none.
func (q *queue[K]) take(p Priority) *entry[K] {
	for len(q.ready[p]) > 0 {
		first := q.ready[p][0]
		q.ready[p][0] = place[K]{}
		q.ready[p] = q.ready[p][1:]
		if !first.void() {
			return first.entry
		}
	}
	return nil
}

// done notes the outcome of the key that was being reconciled.
func (q *queue[K]) done(key K, o Outcome, err error, random float64, now time.Time) {
	e := q.entries[key]
	if err != nil {
		q.failed(e, err, random, now)
		return
	}
	e.failures, e.err = 0, nil
	e.more, e.urgency = o.Throttled, o.Urgency
	if !o.Throttled {
		e.throttledSince = time.Time{}
	} else if e.throttledSince.IsZero() {
		e.throttledSince = now
	}
	switch {
	case o.Await != nil:
		e.await = o.Await
		q.delay(e, awaiting, now.Add(q.viewWait))
	case e.again:
		q.repeat(e)
	case e.more:
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
	after, firm := q.pause(e, err, random)
	again := e.again && e.againPriority == High && !firm && e.failures == 1
	e.again = false
	if again { // it failed on what is no longer wanted
		q.line(e, High)
		return
	}
	q.delay(e, delayed, now.Add(after))
	e.firm = firm
}

// pause is how long a key waits that failed, and whether nothing cuts that short.
func (q *queue[K]) pause(e *entry[K], err error, random float64) (after time.Duration, firm bool) {
	backoff := q.backoff
	if isTemporary(err) {
		backoff = q.outage
	}
	if asked, ok := retryAfter(err); ok {
		return max(asked, q.outage.Min), true // whoever says "at once" is not asked without end
	}
	return backoff.After(e.failures, random), false
}

// waits returns what a key waits to see in the view, if it does.
func (q *queue[K]) waits(key K) (await func() bool, ticket int) {
	if e := q.entries[key]; e != nil && e.standing == awaiting {
		return e.await, e.ticket
	}
	return nil, 0
}

// seen notes that the view has caught up with the write of a ticket.
func (q *queue[K]) seen(key K, ticket int) {
	if e := q.entries[key]; e != nil && e.standing == awaiting && e.ticket == ticket {
		q.settle(e)
	}
}

// settle ends the wait for the view.
func (q *queue[K]) settle(e *entry[K]) {
	switch {
	case e.again:
		q.repeat(e)
	case e.more:
		q.throttle(e)
	default:
		e.ticket++
		delete(q.entries, e.key)
	}
}

// expire ends a wait that was in vain. Perhaps what was written is gone already,
// and the view never had it to miss: nobody else would ever say so.
func (q *queue[K]) expire(e *entry[K], now time.Time) {
	if !e.again {
		e.again, e.againSince, e.againPriority = true, now, Low
	}
	q.repeat(e)
}

func (q *queue[K]) repeat(e *entry[K]) {
	e.again, e.since = false, e.againSince
	q.line(e, e.againPriority)
}

// timeline is a heap of places by time.
type timeline[K comparable] []place[K]

func (t timeline[K]) Len() int           { return len(t) }
func (t timeline[K]) Less(i, j int) bool { return t[i].entry.at.Before(t[j].entry.at) }
func (t timeline[K]) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline[K]) Push(x any)        { *t = append(*t, x.(place[K])) }
func (t *timeline[K]) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = place[K]{}
	*t = old[:len(old)-1]
	return last
}
