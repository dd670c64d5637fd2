package push

import (
	"context"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Config configures how an engine delivers the resources of its producers.
type Config struct {
	// Order names types in the order of delivery: a type goes before the types that refer to
	// it. Types that it does not name follow.
	Order []string
	// Frame returns the bytes that the protocol writes before the body of a resource, for
	// [WholeState] and [Delta] subscribers. It is called once per encoding.
	Frame func(Encoded) [modes][]byte
	// Workers is the number of goroutines that assemble responses; default one per processor.
	Workers int
	// Patience is how long a response may stay unanswered before the next of its type is sent
	// nevertheless; default 10 s.
	Patience time.Duration
	// Budget bounds the bytes of a response that may be split; default 3 MiB, below the 4 MiB
	// that gRPC clients accept. One resource is never split.
	Budget int
	// Largest bounds the bytes of a full set and of a single resource, neither of which can be
	// split; zero means no bound. A larger set or resource is not sent, and the status of the
	// subscriber reports that.
	Largest int
	// Turn bounds the names that one turn of a worker considers for a type; default 4,096. A
	// subscriber with very many names then does not delay the others.
	Turn int
	// Holdings bound the names and views of subscribers.
	Holdings Holdings
	// Sent is called when the transport has taken a response, and ACKed when the client has
	// ACKed it; both may be nil. They get the time since the oldest change in the response was
	// committed. They must not block.
	Sent, ACKed func(t Type, took time.Duration)
	// Log receives the panics that the engine survived.
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
	if c.Turn == 0 {
		c.Turn = 4096
	}
	c.Holdings = c.Holdings.withDefaults()
	return c
}

// Engine delivers the resources of its producers to its subscribers.
type Engine struct {
	config    Config
	reader    *world.Reader
	index     *index
	queue     *queue
	holdings  *holdings
	producers []*Producer // all of them before Run
	table     atomic.Pointer[table]
	wake      chan struct{} // holds a token while a published update waits
	primed    chan struct{} // see Primed

	// step is held while a step's marks are made. A reader of the worlds sees the whole step
	// or nothing of it, and so can keep the order of types.
	step  sync.RWMutex
	steps uint64 // number of steps made; guarded by step
	asked uint64 // number of questions to the index; used by the dispatcher only

	mu          sync.Mutex
	subscribers map[*Subscriber]struct{}
	stopped     bool
}

// New returns an engine. It does nothing until [Engine.Run].
func New(config Config) *Engine {
	e := &Engine{
		config:      config.withDefaults(),
		reader:      world.NewReader(config.Frame, config.Log),
		index:       newIndex(),
		queue:       newQueue(),
		wake:        make(chan struct{}, 1),
		primed:      make(chan struct{}),
		subscribers: map[*Subscriber]struct{}{},
	}
	e.holdings = newHoldings(e.config.Holdings)
	e.table.Store(&table{Types: &world.Types{}})
	return e
}

// Primed is closed once every producer has a world to serve, except the producers of
// [Engine.ProduceLater].
func (e *Engine) Primed() <-chan struct{} { return e.primed }

// Serves reports whether any producer has a world to serve.
func (e *Engine) Serves() bool {
	return slices.ContainsFunc(e.producers, func(p *Producer) bool { return p.world.Load() != nil })
}

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

// work runs one worker until the queue is closed.
func (e *Engine) work() {
	l := &session.Look{}
	for {
		s, ok := e.queue.take()
		if !ok {
			return
		}
		e.serve(s, l)
		if e.queue.rests() {
			l.Rest()
		}
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
