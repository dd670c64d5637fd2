package controller

import (
	"cmp"
	"container/heap"
	"context"
	"time"
)

// Urgency orders the keys that wait for a permit. Among keys of equal urgency, those of
// [High] priority go first, and then the key that has waited longest.
type Urgency int

// The urgencies.
const (
	Routine Urgency = iota
	Urgent
	MostUrgent
)

// oldestFirst makes every fourth permit go to the key that has waited longest, however
// urgent the others are. So no key starves: with n keys before it, a key waits for at most
// oldestFirst × (n + 1) permits.
const oldestFirst = 4

// Permit is the permit that a key was given before it is reconciled.
type Permit struct {
	// Given means that a permit was taken for this key, for one write.
	Given bool
	// Fair means that the key was given it for its long wait, not for its urgency. It need
	// not give way at once to a more urgent key.
	Fair bool
}

type permitKey struct{}

// PermitOf returns the permit of the key that is being reconciled.
func PermitOf(ctx context.Context) Permit {
	p, _ := ctx.Value(permitKey{}).(Permit)
	return p
}

// Throttled returns how many keys wait for a permit, and how many of them are more urgent
// than u.
func (c *Controller[K]) Throttled(u Urgency) (all, above int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.permits.count(u)
}

// priorities and ranks are the numbers of priorities, and of ranks of throttled keys.
const (
	priorities = int(High) + 1
	ranks      = (int(MostUrgent) + 1) * priorities
)

// permits holds the keys that wait for a permit, by rank: urgency first, then priority.
// Within a rank, the key that has waited longest comes first.
type permits[K comparable] struct {
	ranks   [ranks]ordered[*entry[K]]
	granted int // permits since one was given to the key that had waited longest
}

// throttle makes a key wait for a permit.
func (q *queue[K]) throttle(e *entry[K]) {
	e.phase, e.await = throttled, nil
	e.ticket++
	e.rank = int(e.urgency)*priorities + int(e.priority)
	heap.Push(&q.permits.ranks[e.rank], e)
}

// unthrottle ends a key's wait for a permit.
func (q *queue[K]) unthrottle(e *entry[K]) { heap.Remove(&q.permits.ranks[e.rank], e.slot) }

// hasThrottled reports whether a key waits for a permit.
func (q *queue[K]) hasThrottled() bool {
	all, _ := q.permits.count(MostUrgent)
	return all > 0
}

// admit starts the next throttled key, with a permit. At least one key must be throttled.
func (q *queue[K]) admit() (K, Permit) {
	e, fair := q.permits.mostUrgent(), false
	if q.permits.granted++; q.permits.granted >= oldestFirst {
		e, fair = q.permits.oldest(), true
		q.permits.granted = 0
	}
	q.unthrottle(e)
	e.phase, e.throttledSince = running, time.Time{}
	return e.key, Permit{Given: true, Fair: fair}
}

// mostUrgent returns the first key of the highest rank.
func (p *permits[K]) mostUrgent() *entry[K] {
	for rank := ranks - 1; rank > 0; rank-- {
		if len(p.ranks[rank]) > 0 {
			return p.ranks[rank][0]
		}
	}
	return p.ranks[0][0]
}

// oldest returns the key that has waited longest.
func (p *permits[K]) oldest() (oldest *entry[K]) {
	for _, rank := range p.ranks {
		if len(rank) > 0 && (oldest == nil || rank[0].throttledSince.Before(oldest.throttledSince)) {
			oldest = rank[0]
		}
	}
	return oldest
}

// count returns the number of keys, and of those more urgent than u.
func (p *permits[K]) count(u Urgency) (all, above int) {
	for rank := range p.ranks {
		all += len(p.ranks[rank])
		if Urgency(rank/priorities) > u {
			above += len(p.ranks[rank])
		}
	}
	return all, above
}

// before orders keys by the begin of their wait for a permit.
func (e *entry[K]) before(other *entry[K]) bool {
	return cmp.Or(e.throttledSince.Compare(other.throttledSince), e.since.Compare(other.since)) < 0
}

func (e *entry[K]) movedTo(slot int) { e.slot = slot }
