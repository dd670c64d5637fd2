package controller

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// Outcome is what reconciling a key without an error led to.
type Outcome struct {
	// Await reports whether the reconciler's view shows what it has just written;
	// nil if it wrote nothing. It is asked whenever [Controller.Observed] is called
	// for the key, and must not block.
	Await func() bool
	// After asks for the key to be reconciled again after that time, though it did
	// not fail; zero does not.
	After time.Duration
	// Throttled says that something is left to do for which there was no permit;
	// the key is reconciled again once [Config.Permit] gives one, and Urgency says
	// which of those that wait goes first.
	Throttled bool
	Urgency   Urgency
}

// Gate is something that must be known before anything is reconciled.
type Gate struct {
	Name string
	Open <-chan struct{} // closed once it is known
}

// Config says what a controller does.
type Config[K comparable] struct {
	// Reconcile brings a key to its desired state. It is called by several workers,
	// but never twice at a time for one key. It returns soon after ctx ends.
	Reconcile func(ctx context.Context, key K) (Outcome, error)
	// Workers is how many keys are reconciled at a time.
	Workers int
	Gates   []Gate
	// Backoff bounds how long a key that fails waits. Unset, it suits a server
	// that answers within a second.
	Backoff wait.Backoff
	// Outage bounds how long a key waits whose failure is [Temporary]. Unset, it is
	// some seconds.
	Outage wait.Backoff
	// Permit takes a permit for one key that is throttled, or else says when there
	// may be one. It must not block. Without it, no key has to wait for one.
	Permit func(now time.Time) (ok bool, at time.Time)
	// ViewWait bounds how long a key waits for the view after a write. Then it is
	// reconciled again.
	ViewWait time.Duration
}

// Controller reconciles keys. Make one with [New].
type Controller[K comparable] struct {
	config Config[K]
	wake   chan struct{} // holds a token when the queue has changed

	mu    sync.Mutex // guards queue; never held across a call
	queue *queue[K]
}

// New returns a controller that reconciles nothing before it is run.
func New[K comparable](c Config[K]) *Controller[K] {
	if c.Backoff == (wait.Backoff{}) {
		c.Backoff = wait.Backoff{Min: 125 * time.Millisecond, Max: 30 * time.Second}
	}
	if c.Outage == (wait.Backoff{}) {
		c.Outage = wait.Backoff{Min: 125 * time.Millisecond, Max: 3 * time.Second}
	}
	if c.Permit == nil {
		c.Permit = func(time.Time) (bool, time.Time) { return true, time.Time{} }
	}
	c.Workers = max(c.Workers, 1)
	c.ViewWait = cmp.Or(c.ViewWait, 10*time.Second)
	return &Controller[K]{config: c, wake: make(chan struct{}, 1), queue: newQueue[K](c.Backoff, c.Outage, c.ViewWait)}
}

// Add notes that keys may be out of order.
func (c *Controller[K]) Add(p Priority, keys ...K) {
	now := time.Now()
	c.mu.Lock()
	for _, key := range keys {
		c.queue.add(key, p, now)
	}
	c.mu.Unlock()
	c.notify()
}

// Observed notes that the reconciler's view of a key has moved on. It does not
// by itself ask for the key to be reconciled.
func (c *Controller[K]) Observed(key K) {
	c.mu.Lock()
	await, ticket := c.queue.waits(key)
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
	default: // it will look anyway
	}
}

// Run reconciles keys until ctx ends, once every gate is open. It returns when
// every reconciler has. A controller is run once.
func (c *Controller[K]) Run(ctx context.Context) {
	for _, gate := range c.config.Gates {
		select {
		case <-ctx.Done():
			return
		case <-gate.Open:
		}
	}
	work := make(chan turn[K])
	var workers sync.WaitGroup
	for range c.config.Workers {
		workers.Go(func() { c.work(ctx, work) })
	}
	c.schedule(ctx, work)
	close(work)
	workers.Wait()
}

// turn is a key's time with a worker.
type turn[K comparable] struct {
	key    K
	permit Permit
}

// schedule hands keys to workers. It waits for: the end, a worker that is free,
// a change of the queue, the time of a key or of a permit.
func (c *Controller[K]) schedule(ctx context.Context, work chan<- turn[K]) {
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

// next returns the turn that is due now, or else when there may be one.
func (c *Controller[K]) next(now time.Time) (next turn[K], ok bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var permitAt time.Time
	if c.queue.waiting() {
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

func (c *Controller[K]) work(ctx context.Context, work <-chan turn[K]) {
	for next := range work {
		key := next.key
		outcome, err := c.config.Reconcile(context.WithValue(ctx, permitKey{}, next.permit), key)
		now := time.Now()
		c.mu.Lock()
		c.queue.done(key, outcome, err, rand.Float64(), now) //nolint:gosec // only spreads retries
		c.mu.Unlock()
		if outcome.Await != nil {
			c.Observed(key) // the view may have been quicker than the answer
		}
		c.notify()
	}
}

// Status is how a controller stands.
type Status[K comparable] struct {
	// Missing names the gates that are not open.
	Missing []string
	// Length counts the keys that are not known to be in order, and Oldest is since
	// when the first of them is not; zero if there is none.
	Length int
	Oldest time.Time
	// Throttled counts by urgency the keys that wait for a permit, and
	// ThrottledSince is since when the first of them does.
	Throttled      map[Urgency]int
	ThrottledSince time.Time
	// Failing are the keys that could not be reconciled, the oldest first.
	Failing []Failure[K]
}

// Failure is a key that could not be reconciled.
type Failure[K comparable] struct {
	Key   K
	Err   error // of the last try
	Tries int   // in a row
	Since time.Time
	Next  time.Time // when it is tried again; zero if it waits for a worker
}

// Status tells how the controller stands.
func (c *Controller[K]) Status() Status[K] {
	s := Status[K]{Throttled: map[Urgency]int{}}
	for _, gate := range c.config.Gates {
		select {
		case <-gate.Open:
		default:
			s.Missing = append(s.Missing, gate.Name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.queue.entries {
		if e.standing == delayed && e.err == nil || e.standing == awaiting && !e.again {
			continue // in order, as far as is known
		}
		s.Length++
		since := e.since
		if e.standing == awaiting {
			since = e.againSince
		}
		s.Oldest = earlier(s.Oldest, since)
		if e.err != nil {
			s.Failing = append(s.Failing, e.failure())
		}
		if e.standing == throttled {
			s.Throttled[e.urgency]++
			s.ThrottledSince = earlier(s.ThrottledSince, e.throttledSince)
		}
	}
	slices.SortFunc(s.Failing, func(a, b Failure[K]) int { return a.Since.Compare(b.Since) })
	return s
}

// earlier is the earlier of two times, of which the first may not be set.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (e *entry[K]) failure() Failure[K] {
	f := Failure[K]{Key: e.key, Err: e.err, Tries: e.failures, Since: e.failedSince}
	if e.standing == delayed {
		f.Next = e.at
	}
	return f
}
