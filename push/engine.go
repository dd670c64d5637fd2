package push

import (
	"context"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what an output delivers and how.
type Config struct {
	// Types in the order of delivery.
	Types []TypeSpec
	// Frame returns what the protocol writes before the body of a resource, for
	// [WholeState] and [Delta] subscribers. It is called once per encoding.
	Frame func(Encoded) [2][]byte
	// Workers assemble responses; default one per processor.
	Workers int
	// Patience is how long a response may stay unanswered before the next of
	// its type is sent all the same; default 10 s.
	Patience time.Duration
	// Budget bounds the bytes of a response that may be split; default 3 MiB,
	// below the 4 MiB that gRPC clients take. One resource is never split.
	Budget int
	// Debounce delays changes; the zero value does not, for back-pressure
	// batches better: a busy subscriber takes the newest when it is ready.
	Debounce Debounce
	// Sent and Accepted, if set, are told how long ago the oldest change of a
	// response had been committed, when the transport has taken the response and
	// when the client has accepted it. They must not block.
	Sent, Accepted func(t Type, took time.Duration)
	// Log is told of panics, which are survived.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Budget == 0 {
		c.Budget = 3 << 20
	}
	return c
}

// Engine delivers one output's resources to its subscribers.
type Engine struct {
	config Config
	cache  *cache
	index  *index
	queue  *queue
	inbox  inbox
	// step is held while a step's marks are made: whoever reads the world sees
	// all that it changed or nothing of it, and so can keep the order of types.
	step   sync.RWMutex
	world  atomic.Pointer[World] // nil until the first is published
	primed chan struct{}         // closed once there is a world
	counts counters
	panics *panics

	mu          sync.Mutex
	subscribers map[*Subscriber]struct{}
	stopped     bool
}

// New returns an engine. It does nothing until [Engine.Run].
func New(config Config) *Engine {
	e := &Engine{
		config:      config.withDefaults(),
		index:       newIndex(),
		queue:       newQueue(),
		inbox:       newInbox(),
		panics:      newPanics(config.Log),
		primed:      make(chan struct{}),
		subscribers: map[*Subscriber]struct{}{},
	}
	e.cache = newCache(config.Frame, e.panics)
	e.counts.types = make([]typeCounters, len(config.Types))
	return e
}

// Publish takes note of the newest world and returns. The first one opens the
// engine: until then subscribers wait.
func (e *Engine) Publish(u Update) { e.inbox.put(u) }

// Primed is closed once there is a world to serve.
func (e *Engine) Primed() <-chan struct{} { return e.primed }

// Run dispatches and assembles until ctx ends, then closes every subscriber.
func (e *Engine) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range e.config.Workers {
		workers.Go(e.work)
	}
	e.dispatchAll(ctx)
	e.queue.close()
	workers.Wait()
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	for s := range e.all() {
		s.Close()
	}
}

// sweepEvery bounds how long an encoding outlives the last interest in it.
const sweepEvery = 10 * time.Minute

// dispatchAll waits for: the end, a change whose debounce is over, the time to
// sweep the cache.
func (e *Engine) dispatchAll(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	wait := newPacer(e.config.Debounce)
	defer wait.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			e.cache.sweep()
		case <-e.inbox.wake:
			wait.note(time.Now(), e.inbox.changes())
		case <-wait.over():
			wait.reset()
			if u, ok := e.inbox.take(); ok {
				e.take(u)
			}
		}
	}
}

// dispatch makes a world the current one and marks what it changed. The order
// of the two is what loses nothing: see the package comment.
func (e *Engine) dispatch(u Update) {
	e.step.Lock()
	defer e.step.Unlock()
	before := e.world.Swap(&u.World)
	if before == nil {
		close(e.primed)
		for s := range e.all() {
			s.marks.review.Store(true)
			e.queue.add(s, false)
		}
		return
	}
	old, now := *before, u.World
	e.reviewAll(old, now, u.Reviewed)
	for _, c := range u.Changed {
		affected := func(v View) bool {
			was, had, bad := e.find(old, v, c.Type, c.Name)
			is, has, worse := e.find(now, v, c.Type, c.Name)
			return bad || worse || had != has || was != is // to mark one too many costs a comparison
		}
		e.index.concerned(c, affected, func(s *Subscriber) {
			if s.mark(c.Type, c.Name, pending{urgent: c.Urgent, since: u.Committed}) {
				e.queue.add(s, c.Urgent)
			}
		})
	}
	if now.Complete() && !old.Complete() {
		for s := range e.all() {
			s.recheck()
			e.queue.add(s, false)
		}
	}
}

// work is the life of one worker.
func (e *Engine) work() {
	for {
		s, ok := e.queue.take()
		if !ok {
			return
		}
		e.turn(s)
	}
}

// all yields the subscribers there are now.
func (e *Engine) all() iter.Seq[*Subscriber] {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*Subscriber, 0, len(e.subscribers))
	for s := range e.subscribers {
		list = append(list, s)
	}
	return func(yield func(*Subscriber) bool) {
		for _, s := range list {
			if !yield(s) {
				return
			}
		}
	}
}
