package controller

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Outcome is the outcome of reconciling a key without an error.
type Outcome struct {
	// Await reports whether the reconciler's view shows its write; nil if it wrote
	// nothing. It is called with each [Controller.Observed] of the key, and must not block.
	Await func() bool
	// After is the time until the key is reconciled again, although it did not fail; zero
	// means not at all.
	After time.Duration
	// Throttled means that work is left for which there was no permit. The key is
	// reconciled again once [Config.Permit] gives one; Urgency orders the waiting keys.
	Throttled bool
	Urgency   Urgency
}

// Gate is a condition that must be met before any key is reconciled.
type Gate struct {
	Name string
	Open <-chan struct{} // closed once it is met
}

// Config configures a controller. Every field is required.
type Config[K comparable] struct {
	// Gates are open once everything that a reconciler reads has been listed. Keys then
	// returns every key with a desired or an actual state. It is called once.
	Gates []Gate
	Keys  func() []K
	// Reconcile brings a key to its desired state. It is called by several workers,
	// but never twice at a time for one key. It returns soon after ctx ends.
	Reconcile func(ctx context.Context, key K) (Outcome, error)
	// Workers is the number of keys that are reconciled at the same time.
	Workers int
	// Permit takes a permit for one throttled key, or returns when there may be one. It
	// must not block.
	Permit func(now time.Time) (ok bool, at time.Time)
}

// Controller reconciles keys. Make one with [New].
type Controller[K comparable] struct {
	config Config[K]
	wake   chan struct{} // holds a token when the queue has changed

	mu     sync.Mutex // guards the rest; never held across a call
	queue  *queue[K]
	began  time.Time // when Run was called
	primed bool      // every gate is open
	filled bool      // and the keys of the start are in the queue
}

// New returns a controller that reconciles nothing before it is run.
func New[K comparable](c Config[K]) *Controller[K] {
	return &Controller[K]{config: c, wake: make(chan struct{}, 1), queue: newQueue[K]()}
}

// Add adds keys to reconcile. Before every gate is open it does nothing, because
// [Config.Keys] returns these keys, too.
func (c *Controller[K]) Add(p Priority, keys ...K) {
	now := time.Now()
	c.mu.Lock()
	if c.primed {
		for _, key := range keys {
			c.queue.add(key, p, now)
		}
	}
	c.mu.Unlock()
	c.notify()
}

// Observed reports a change of the reconciler's view of a key. It may end the key's wait
// for the view, but does not make the key be reconciled.
func (c *Controller[K]) Observed(key K) {
	c.mu.Lock()
	await, ticket := c.queue.awaited(key)
	c.mu.Unlock()
	if await == nil || !await() {
		return
	}
	c.mu.Lock()
	c.queue.seen(key, ticket)
	c.mu.Unlock()
	c.notify()
}

func (c *Controller[K]) notify() {
	select {
	case c.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// Run waits until every gate is open, and reconciles keys until ctx ends, beginning with
// [Config.Keys]. It returns when every reconciler has returned. A controller is run once.
func (c *Controller[K]) Run(ctx context.Context) {
	if !c.prime(ctx) {
		return
	}
	work := make(chan job[K])
	var workers sync.WaitGroup
	for range c.config.Workers {
		workers.Go(func() { c.work(ctx, work) })
	}
	c.schedule(ctx, work)
	close(work)
	workers.Wait()
}

// prime waits until every gate is open, and adds the keys of the start; false means that ctx
// ended first. Changes count from before the keys are read, so that none is missed.
func (c *Controller[K]) prime(ctx context.Context) bool {
	c.mu.Lock()
	c.began = time.Now()
	c.mu.Unlock()
	for _, gate := range c.config.Gates {
		select {
		case <-ctx.Done():
			return false
		case <-gate.Open:
		}
	}
	c.mu.Lock()
	c.primed = true
	c.mu.Unlock()
	c.Add(Low, c.config.Keys()...)
	c.mu.Lock()
	c.filled = true
	c.mu.Unlock()
	return true
}

// job is a key for a worker, with its permit.
type job[K comparable] struct {
	key    K
	permit Permit
}

// schedule hands jobs to workers. Cases: ctx ends; a worker is free; the queue has changed;
// the wait of a key or for a permit is over.
func (c *Controller[K]) schedule(ctx context.Context, work chan<- job[K]) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		next, ok, at := c.next(now)
		if ok {
			select {
			case <-ctx.Done():
			case work <- next:
			}
			continue
		}
		timer.Stop()
		if !at.IsZero() {
			timer.Reset(at.Sub(now))
		}
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-timer.C:
		}
	}
}

// next returns the job that is due now, or when there may be one.
func (c *Controller[K]) next(now time.Time) (next job[K], ok bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var permitAt time.Time
	if c.queue.hasThrottled() {
		if ok, permitAt = c.config.Permit(now); ok {
			next.key, next.permit = c.queue.admit()
			return next, true, time.Time{}
		}
	}
	next.key, ok, at = c.queue.next(now)
	if at.IsZero() || !permitAt.IsZero() && permitAt.Before(at) {
		at = permitAt
	}
	return next, ok, at
}

func (c *Controller[K]) work(ctx context.Context, work <-chan job[K]) {
	for next := range work {
		key := next.key
		outcome, err := c.config.Reconcile(context.WithValue(ctx, permitKey{}, next.permit), key)
		now := time.Now()
		c.mu.Lock()
		c.queue.done(key, outcome, err, rand.Float64(), now) //nolint:gosec // only spreads retries
		c.mu.Unlock()
		if outcome.Await != nil {
			c.Observed(key) // the view may show the write before its answer arrived
		}
		c.notify()
	}
}

// Status is the status of a controller.
type Status[K comparable] struct {
	// Missing names the gates that are not open, and after them the list of [Config.Keys].
	// MissingSince is since when the controller waits for these.
	Missing      []string
	MissingSince time.Time
	// Length counts the keys that are not reconciled. Oldest is when the oldest of them was
	// added; zero if there is none.
	Length int
	Oldest time.Time
	// Throttled counts the keys that wait for a permit, by urgency. ThrottledSince is the
	// begin of the longest of these waits.
	Throttled      map[Urgency]int
	ThrottledSince time.Time
	// Failing are the keys whose last try failed, the oldest failure first.
	Failing []Failure[K]
}

// Failure is a key whose last try failed.
type Failure[K comparable] struct {
	Key   K
	Err   error     // of the last try
	Tries int       // failed in a row
	Since time.Time // the first of these
	Next  time.Time // the next try; zero if the key waits for a worker
}

// Status returns the status.
func (c *Controller[K]) Status() Status[K] {
	s := Status[K]{Throttled: map[Urgency]int{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.filled {
		s.Missing, s.MissingSince = c.missing(), c.began
	}
	for _, e := range c.queue.entries {
		if e.phase == delayed && e.err == nil || e.phase == awaiting && !e.changed {
			continue // reconciled, as far as is known
		}
		s.Length++
		since := e.since
		if e.phase == awaiting {
			since = e.changedSince
		}
		s.Oldest = earlier(s.Oldest, since)
		if e.err != nil {
			s.Failing = append(s.Failing, e.failure())
		}
		if e.phase == throttled {
			s.Throttled[e.urgency]++
			s.ThrottledSince = earlier(s.ThrottledSince, e.throttledSince)
		}
	}
	slices.SortFunc(s.Failing, func(a, b Failure[K]) int { return a.Since.Compare(b.Since) })
	return s
}

// missing names the gates that are not open, or otherwise the list of keys.
func (c *Controller[K]) missing() (names []string) {
	for _, gate := range c.config.Gates {
		select {
		case <-gate.Open:
		default:
			names = append(names, gate.Name)
		}
	}
	if len(names) == 0 {
		names = []string{"the list of keys"}
	}
	return names
}

// earlier returns the earlier of two times; a may be unset.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (e *entry[K]) failure() Failure[K] {
	f := Failure[K]{Key: e.key, Err: e.err, Tries: e.failures, Since: e.failedSince}
	if e.phase == delayed {
		f.Next = e.at
	}
	return f
}
