package push

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/queue"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Config configures how an engine delivers the resources of its producers.
type Config struct {
	// Order names types in the order of delivery: a type goes before the types that refer to
	// it. Types that it does not name follow.
	Order []string
	// Frame returns the bytes that the protocol writes before the body of a resource, for
	// [world.WholeState] and [world.Delta] subscribers. It is called once per encoding.
	Frame func(world.Encoded) [world.Modes][]byte
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
	Sent, ACKed func(t world.Type, took time.Duration)
	// Events takes the acts of clients; nil keeps nothing.
	Events *events.Clients
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
type Engine struct{ core }

// New returns an engine. It does nothing until [Engine.Run].
func New(config Config) *Engine {
	config = config.withDefaults()
	e := &Engine{core{
		config:      config,
		reader:      world.NewReader(config.Frame, config.Log),
		index:       index.New[*interest](),
		queue:       queue.New[*Subscriber](),
		holdings:    newHoldings(config.Holdings),
		wake:        make(chan struct{}, 1),
		primed:      make(chan struct{}),
		subscribers: map[*Subscriber]struct{}{},
	}}
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
		workers.Go((&worker{core: &e.core}).run)
	}
	(&dispatcher{core: &e.core}).run(ctx)
	e.queue.Close()
	workers.Wait()
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	for s := range e.all() {
		s.Close()
	}
}

// Connect enters a subscriber. It returns nil once the engine has stopped.
func (e *Engine) Connect(info Info, client world.Client) *Subscriber {
	s := &Subscriber{
		Info: info, engine: &e.core, client: client,
		stream: session.NewStream(session.Limits{Budget: e.config.Budget, Largest: e.config.Largest, Turn: e.config.Turn}, client.Kind, e.reader.Seed()),
		// A type has at most one response that was not yet handed to the transport. A worker
		// therefore never blocks when it puts one in.
		out: make(chan *session.Response, MaxTypes),
	}
	// Its first turn computes its views. From here on, a world that changes its view requests
	// a review again.
	s.review.Store(true)
	s.place.Owner = s
	if !e.enter(s) {
		return nil
	}
	e.config.Events.Add(events.Connected, info.ID, "by "+info.Protocol+info.claim())
	return s
}

// endInterval is the longest pause between two ends of subscribers.
const endInterval = 20 * time.Millisecond

// EndAll ends every subscriber, one after the other and evenly spread over a duration. It
// takes less time if there are few, see endInterval. The spread keeps clients from
// reconnecting to other replicas all at once. A subscriber is served until its end. If ctx
// ends, the rest end at once.
func (e *Engine) EndAll(ctx context.Context, over time.Duration) {
	list := slices.Collect(e.all())
	pause := min(over/time.Duration(max(len(list), 1)), endInterval)
	next := time.NewTimer(0)
	defer next.Stop()
	began := time.Now()
	for i, s := range list {
		next.Reset(time.Until(began.Add(time.Duration(i) * pause)))
		select {
		case <-next.C:
		case <-ctx.Done():
		}
		s.Close()
	}
	for s := range e.all() { // subscribers that connected meanwhile
		s.Close()
	}
}
