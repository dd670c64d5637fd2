package scale

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fleet is many clients of one server. The benchmark's goroutine owns it; the
// clients report to it.
type fleet struct {
	server *server
	meter  meter
	size   int
	stop   func() // ends all clients and waits for them; nil if there are none

	broken     chan error                // why a client ended on its own
	awaited    atomic.Pointer[awaited]   // nil while nothing is expected
	unexpected atomic.Pointer[unwelcome] // the first response that nothing was known to cause
	bytes      atomic.Int64              // of the newest response that a change brought
	steady     atomic.Pointer[steady]    // follows the first client instead; may be nil

	mu   sync.Mutex
	held map[string]map[string]string // versions by type and name, as the first delta client has them
}

// awaited is something that some clients are to report, once each.
type awaited struct {
	from time.Time
	at   []atomic.Int64 // when each client reported it, in ns after from; 0 if it has not
	left atomic.Int64
	done chan struct{}
}

type unwelcome struct {
	client    int
	typeURL   string
	resources int
}

func newFleet(s *server, size int) *fleet {
	return &fleet{server: s, size: size, broken: make(chan error, size), held: map[string]map[string]string{}}
}

// connect connects all clients at once and returns how long each took to have
// everything. Each says what scriptOf gives for its number.
func (f *fleet) connect(tb testing.TB, scriptOf func(int) *script) []time.Duration {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	f.stop = func() { cancel(); running.Wait() }
	clients := make([]*client, f.size)
	for i := range clients {
		clients[i] = &client{script: scriptOf(i), number: i, fleet: f}
	}
	connected := f.expect(f.size)
	for _, c := range clients {
		running.Go(func() {
			if err := c.run(ctx); ctx.Err() == nil {
				f.broken <- fmt.Errorf("client %d: %w", c.number, err)
			}
		})
	}
	return f.await(tb, connected)
}

// disconnect ends all clients and waits until the server has noticed.
func (f *fleet) disconnect(tb testing.TB) {
	tb.Helper()
	f.stop()
	f.server.await(tb, "end of all clients", func() bool { return f.server.metrics(tb).Sum("isthmus_clients") == 0 })
}

// follow makes a change and returns how long it took to reach each of the
// clients it concerns.
func (f *fleet) follow(tb testing.TB, concerned int, change func() time.Time) []time.Duration {
	tb.Helper()
	arrival := f.expect(concerned)
	written := change()
	took := f.await(tb, arrival)
	for i := range took {
		took[i] -= written.Sub(arrival.from)
	}
	return took
}

func (f *fleet) expect(clients int) *awaited {
	a := &awaited{from: time.Now(), at: make([]atomic.Int64, f.size), done: make(chan struct{})}
	a.left.Store(int64(clients))
	f.awaited.Store(a)
	return a
}

// await waits for what is expected and returns when it was reported.
func (f *fleet) await(tb testing.TB, a *awaited) []time.Duration {
	tb.Helper()
	select {
	case <-a.done:
	case err := <-f.broken:
		tb.Fatal(err)
	case <-time.After(patience):
		tb.Fatalf("%d of %d clients are still waiting after %v", a.left.Load(), f.size, patience)
	}
	f.awaited.Store(nil)
	var took []time.Duration
	for i := range a.at {
		if ns := a.at[i].Load(); ns != 0 {
			took = append(took, time.Duration(ns))
		}
	}
	return took
}

// report notes that a client has what is expected; false if nothing is
// expected of it.
func (f *fleet) report(c *client, now time.Time) bool {
	a := f.awaited.Load()
	if a == nil || !a.at[c.number].CompareAndSwap(0, int64(now.Sub(a.from))) {
		return false
	}
	if a.left.Add(-1) == 0 {
		close(a.done)
	}
	return true
}

// complete notes that a client has everything it asked for.
func (f *fleet) complete(c *client, now time.Time) { f.report(c, now) }

// received notes what a client that had everything was sent. A change brings
// it the load assignment of one service, once.
func (f *fleet) received(c *client, r *response, now time.Time) {
	if s := f.steady.Load(); s != nil {
		if c.number == 0 {
			s.acknowledged(r, now)
		}
		return
	}
	f.bytes.Store(int64(r.bytes))
	if r.typeURL != assignments || r.resources != 1 || !f.report(c, now) {
		f.unexpected.CompareAndSwap(nil, &unwelcome{c.number, short(r.typeURL), r.resources})
	}
}

// verify fails the benchmark if a client was sent what nothing had caused.
func (f *fleet) verify(tb testing.TB) {
	tb.Helper()
	if u := f.unexpected.Load(); u != nil {
		tb.Fatalf("client %d was sent a surplus response of %d × %s", u.client, u.resources, u.typeURL)
	}
}

// keep remembers the versions that a response recorded.
func (f *fleet) keep(r *response) {
	if !r.recording {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[r.typeURL] == nil {
		f.held[r.typeURL] = map[string]string{}
	}
	maps.Copy(f.held[r.typeURL], r.versions)
}

// holding is what every client has by now.
func (f *fleet) holding() map[string]map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return map[string]map[string]string{clusters: maps.Clone(f.held[clusters]), assignments: maps.Clone(f.held[assignments])}
}
