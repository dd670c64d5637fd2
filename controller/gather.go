package controller

import (
	"context"
	"sync"
	"time"
)

// Gatherer makes one delivery of a burst of changes. What comes while a
// delivery is under way is part of the next one. Make one with [NewGatherer].
type Gatherer[K comparable] struct {
	due     func(first, last time.Time, events int) time.Time
	deliver func(keys []K)
	wake    chan struct{} // holds a token when something was added

	mu   sync.Mutex // guards the rest; never held across a delivery
	keys []K        // in the order they came
	in   map[K]struct{}
	// first and last are when the first and the newest change came, and events is
	// how many there were, of whatever key.
	first, last time.Time
	events      int
}

// NewGatherer returns a gatherer that delivers keys, each once, when due says
// so: given when the first and the newest change came and how many there were.
// Due must be a pure function.
func NewGatherer[K comparable](due func(first, last time.Time, events int) time.Time, deliver func(keys []K)) *Gatherer[K] {
	return &Gatherer[K]{due: due, deliver: deliver, wake: make(chan struct{}, 1), in: map[K]struct{}{}}
}

// Add notes one event that concerns keys. It never blocks.
func (g *Gatherer[K]) Add(keys ...K) {
	if len(keys) == 0 {
		return
	}
	now := time.Now()
	g.mu.Lock()
	if g.events == 0 {
		g.first = now
	}
	g.last, g.events = now, g.events+len(keys)
	for _, key := range keys {
		if _, ok := g.in[key]; !ok {
			g.in[key] = struct{}{}
			g.keys = append(g.keys, key)
		}
	}
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Run delivers until ctx ends. What is then undelivered stays for the next run.
// It waits for: the end, an event, the end of the burst.
func (g *Gatherer[K]) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		if wait, some := g.wait(); some {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		case <-timer.C:
			if keys := g.take(); len(keys) > 0 {
				g.deliver(keys)
			}
		}
	}
}

// wait returns how long the burst goes on, if there is one.
func (g *Gatherer[K]) wait() (time.Duration, bool) {
	g.mu.Lock()
	first, last, events := g.first, g.last, g.events
	g.mu.Unlock()
	if events == 0 {
		return 0, false
	}
	return time.Until(g.due(first, last, events)), true
}

func (g *Gatherer[K]) take() []K {
	g.mu.Lock()
	defer g.mu.Unlock()
	keys := g.keys
	g.keys, g.in, g.events = nil, map[K]struct{}{}, 0
	return keys
}
