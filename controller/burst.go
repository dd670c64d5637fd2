package controller

import (
	"cmp"
	"container/heap"
	"time"
)

// burst is the changes of a key that are one delivery.
type burst[K comparable] struct {
	key         K
	first, last time.Time // when the first and the newest change came
	events      int       // how many there were
	due         time.Time
	number      uint64 // of the first change, among those of all keys
	at          int    // in the heap
}

// bursts are those that are not over. They know no clock.
type bursts[K comparable] struct {
	dueAt  func(first, last time.Time, events int) time.Time
	of     map[K]*burst[K]
	sorted ordered[*burst[K]]
	number uint64
}

func newBursts[K comparable](dueAt func(first, last time.Time, events int) time.Time) *bursts[K] {
	return &bursts[K]{dueAt: dueAt, of: map[K]*burst[K]{}}
}

// note takes a change of a key.
func (b *bursts[K]) note(key K, now time.Time) {
	one := b.of[key]
	if one == nil {
		b.number++
		one = &burst[K]{key: key, first: now, number: b.number}
		b.of[key] = one
	}
	one.last = now
	one.events++
	one.due = b.dueAt(one.first, one.last, one.events)
	if one.events == 1 {
		heap.Push(&b.sorted, one)
		return
	}
	heap.Fix(&b.sorted, one.at)
}

// next is when the first burst is over, if there is one.
func (b *bursts[K]) next() (time.Time, bool) {
	if len(b.sorted) == 0 {
		return time.Time{}, false
	}
	return b.sorted[0].due, true
}

// take removes the bursts that are over and returns their keys.
func (b *bursts[K]) take(now time.Time) (keys []K) {
	for len(b.sorted) > 0 && !now.Before(b.sorted[0].due) {
		one, _ := heap.Pop(&b.sorted).(*burst[K])
		delete(b.of, one.key)
		keys = append(keys, one.key)
	}
	return keys
}

// before orders bursts by when they are over.
func (b *burst[K]) before(other *burst[K]) bool {
	return cmp.Or(b.due.Compare(other.due), cmp.Compare(b.number, other.number)) < 0
}

func (b *burst[K]) movedTo(place int) { b.at = place }
