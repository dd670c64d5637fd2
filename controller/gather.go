package controller

import (
	"context"
	"sync"
	"time"
)

// Gatherer turns a burst of changes of a key into one delivery. No key waits for the burst
// of another: a large system changes all the time. A change that arrives during a delivery
// is part of the next one. Make one with [NewGatherer].
type Gatherer[K comparable] struct {
	deliver func(keys []K)
	wake    chan struct{} // holds a token when the earliest due time has moved forward

	mu     sync.Mutex // guards the rest; never held across a delivery
	bursts *bursts[K]
}

// NewGatherer returns a gatherer that delivers a key once for each of its bursts. A burst
// ends at the time that due returns, given the arrival of its first and newest change, and
// their number. Keys that are due together are delivered together. due must be pure.
func NewGatherer[K comparable](due func(first, last time.Time, changes int) time.Time, deliver func(keys []K)) *Gatherer[K] {
	return &Gatherer[K]{deliver: deliver, wake: make(chan struct{}, 1), bursts: newBursts[K](due)}
}

// Add adds one change of each key. It never blocks.
func (g *Gatherer[K]) Add(keys ...K) {
	now := time.Now()
	g.mu.Lock()
	before, some := g.bursts.next()
	for _, key := range keys {
		g.bursts.add(key, now)
	}
	after, waiting := g.bursts.next()
	g.mu.Unlock()
	if !waiting || some && !after.Before(before) {
		return // Run wakes early enough
	}
	select {
	case g.wake <- struct{}{}:
	default: // Run has a wake-up pending
	}
}

// Run delivers until ctx ends. A gatherer is run once.
// Cases: ctx ends; an earlier due time; the end of a burst.
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
