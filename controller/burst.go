package controller

import (
	"cmp"
	"container/heap"
	"time"
)

// burst is the changes of one key that become one delivery.
type burst[K comparable] struct {
	key         K
	first, last time.Time // arrival of the first and the newest change
	changes     int
	due         time.Time // the end of the burst
	number      uint64    // order of the first changes of all bursts
	slot        int       // in the heap
}

// bursts holds the unfinished bursts. It uses no clock.
type bursts[K comparable] struct {
	dueAt  func(first, last time.Time, changes int) time.Time
	byKey  map[K]*burst[K]
	sorted ordered[*burst[K]]
	number uint64
}

func newBursts[K comparable](dueAt func(first, last time.Time, changes int) time.Time) *bursts[K] {
	return &bursts[K]{dueAt: dueAt, byKey: map[K]*burst[K]{}}
}

// add adds a change of a key to its burst, or begins one.
func (b *bursts[K]) add(key K, now time.Time) {
	one := b.byKey[key]
	if one == nil {
		b.number++
		one = &burst[K]{key: key, first: now, number: b.number}
		b.byKey[key] = one
	}
	one.last = now
	one.changes++
	one.due = b.dueAt(one.first, one.last, one.changes)
	if one.changes == 1 {
		heap.Push(&b.sorted, one)
		return
	}
	heap.Fix(&b.sorted, one.slot)
}

// next returns the earliest end of a burst; false if there is none.
func (b *bursts[K]) next() (time.Time, bool) {
	if len(b.sorted) == 0 {
		return time.Time{}, false
	}
	return b.sorted[0].due, true
}

// take removes the finished bursts and returns their keys.
func (b *bursts[K]) take(now time.Time) (keys []K) {
	for len(b.sorted) > 0 && !now.Before(b.sorted[0].due) {
		one, _ := heap.Pop(&b.sorted).(*burst[K])
		delete(b.byKey, one.key)
		keys = append(keys, one.key)
	}
	return keys
}

// before orders bursts by their ends.
func (b *burst[K]) before(other *burst[K]) bool {
	return cmp.Or(b.due.Compare(other.due), cmp.Compare(b.number, other.number)) < 0
}

func (b *burst[K]) movedTo(slot int) { b.slot = slot }
