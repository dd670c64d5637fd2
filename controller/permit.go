package controller

import (
	"cmp"
	"container/heap"
	"context"
	"time"
)

// Urgency says which of the keys that wait for a permit goes first. Among those
// of one urgency a live change goes before what is looked at for the start, and
// else the one that has waited longer.
type Urgency int

// The urgencies.
const (
	Routine Urgency = iota
	Urgent
	MostUrgent
)

// oldestFirst is how often the key that has waited longest has a permit, however
// urgent others are. So a key has one after at most as many permits, times this,
// as there are keys that have waited longer.
const oldestFirst = 4

// Permit is what a key was admitted with.
type Permit struct {
	// Given says that there is one: it has been taken for this key, for one write.
	Given bool
	// Fair says that the key has it because it has waited longest, and not
	// because it is the most urgent: it need not make room at once for another.
	Fair bool
}

type permitKey struct{}

// PermitOf returns what the key was admitted with that is being reconciled.
func PermitOf(ctx context.Context) Permit {
	p, _ := ctx.Value(permitKey{}).(Permit)
	return p
}

// Throttled counts the keys that wait for a permit, and those of them that are
// more urgent than others.
func (c *Controller[K]) Throttled(than Urgency) (all, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.permits.count(than)
}

// levels are how many ranks there are among keys that wait for a permit.
const levels = (int(MostUrgent) + 1) * (int(High) + 1)

// permits are the keys that wait for one, by rank, and in each the one first
// that has waited longest.
type permits[K comparable] struct {
	ranks   [levels]ordered[*entry[K]]
	granted int // since the one that had waited longest had a permit
}

// throttle has a key wait for a permit.
func (q *queue[K]) throttle(e *entry[K]) {
	e.standing, e.await = throttled, nil
	e.ticket++
	e.rank = int(e.urgency)*(int(High)+1) + int(e.priority)
	heap.Push(&q.permits.ranks[e.rank], e)
}

// unthrottle takes a key out of those that wait for a permit.
func (q *queue[K]) unthrottle(e *entry[K]) { heap.Remove(&q.permits.ranks[e.rank], e.slot) }

// waiting reports whether a key waits for a permit.
func (q *queue[K]) waiting() bool {
	all, _ := q.permits.count(MostUrgent)
	return all > 0
}

// admit has the next of the keys that wait for a permit reconciled. There is one.
func (q *queue[K]) admit() (K, Permit) {
	e, fair := q.permits.best(), false
	if q.permits.granted++; q.permits.granted >= oldestFirst {
		e, fair = q.permits.oldest(), true
		q.permits.granted = 0
	}
	q.unthrottle(e)
	e.standing, e.throttledSince = running, time.Time{}
	return e.key, Permit{Given: true, Fair: fair}
}

// best is the first key of the highest rank.
func (p *permits[K]) best() *entry[K] {
	for rank := levels - 1; rank > 0; rank-- {
		if len(p.ranks[rank]) > 0 {
			return p.ranks[rank][0]
		}
	}
	return p.ranks[0][0]
}

// oldest is the key that has waited longest.
func (p *permits[K]) oldest() (oldest *entry[K]) {
	for _, rank := range p.ranks {
		if len(rank) > 0 && (oldest == nil || rank[0].throttledSince.Before(oldest.throttledSince)) {
			oldest = rank[0]
		}
	}
	return oldest
}

// count counts the keys that wait, and those more urgent than others.
func (p *permits[K]) count(than Urgency) (all, more int) {
	for rank := range p.ranks {
		all += len(p.ranks[rank])
		if Urgency(rank/(int(High)+1)) > than {
			more += len(p.ranks[rank])
		}
	}
	return all, more
}

// before orders keys by since when they wait for a permit.
func (e *entry[K]) before(other *entry[K]) bool {
	return cmp.Or(e.throttledSince.Compare(other.throttledSince), e.since.Compare(other.since)) < 0
}

func (e *entry[K]) movedTo(place int) { e.slot = place }
