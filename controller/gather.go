package controller

import (
	"context"
	"sync"
	"time"
)

// Gatherer makes one delivery of a burst of changes of a key, and no key waits
// for another: in a large system something changes all the time. What comes
// while a delivery is under way is part of the next one. Make one with
// [NewGatherer].
type Gatherer[K comparable] struct {
	deliver func(keys []K)
	wake    chan struct{} // holds a token when a burst is due sooner than it was

	mu     sync.Mutex // guards the rest; never held across a delivery
	bursts *bursts[K]
}

// NewGatherer returns a gatherer that delivers a key once for each of its bursts,
// when due says so: given when the burst's first and newest change came and how
// many there were. Keys that are due together are delivered together. Due must
// be a pure function.
func NewGatherer[K comparable](due func(first, last time.Time, events int) time.Time, deliver func(keys []K)) *Gatherer[K] {
	return &Gatherer[K]{deliver: deliver, wake: make(chan struct{}, 1), bursts: newBursts[K](due)}
}

// Add notes one event that concerns keys. It never blocks.
func (g *Gatherer[K]) Add(keys ...K) {
	now := time.Now()
	g.mu.Lock()
	before, some := g.bursts.next()
	for _, key := range keys {
		g.bursts.note(key, now)
	}
	after, waiting := g.bursts.next()
	g.mu.Unlock()
	if !waiting || some && !after.Before(before) {
		return // it waits no longer than it should
	}
	select {
	case g.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Run delivers until ctx ends. What is then undelivered stays for the next run.
// It waits for: the end, an event, the end of a burst.
func (g *Gatherer[K]) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		g.mu.Lock()
		next, some := g.bursts.next()
		g.mu.Unlock()
		if some {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		case <-timer.C:
			g.mu.Lock()
			keys := g.bursts.take(time.Now())
			g.mu.Unlock()
			if len(keys) > 0 {
				g.deliver(keys)
			}
		}
	}
}
