package streams

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// guard protects a server from its connections. Each connection reports to it.
type guard struct {
	*rejections
	limits      Limits
	longest     time.Duration // how long an early stream waits at most
	admission   *admission
	connections *connections
}

// connections is the open connections of a server. It counts each when it is accepted, when
// a stream begins on it, and when it is closed.
type connections struct {
	mu   sync.Mutex
	open map[*connection]struct{}
	// streamless are connections on which no stream has begun yet, by address.
	streamless map[string]int
	closed     bool // no connection is accepted any more
}

func newConnections() *connections {
	return &connections{open: map[*connection]struct{}{}, streamless: map[string]int{}}
}

// enter adds a connection, unless its address already has the most connections without
// streams. A closed set accepts none, and stopping is true.
func (all *connections) enter(c *connection, most int) (entered, stopping bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed || c.address != "" && all.streamless[c.address] >= most {
		return false, all.closed
	}
	all.open[c] = struct{}{}
	all.streamless[c.address]++
	return true, false
}

// closeStreamless closes the connections without a stream, and all later ones. gRPC waits
// for each handshake before it stops, and a silent peer never ends its own.
func (all *connections) closeStreamless() {
	all.mu.Lock()
	all.closed = true
	var silent []*connection
	for c := range all.open {
		if !c.began {
			silent = append(silent, c)
		}
	}
	all.mu.Unlock()
	for _, c := range silent {
		_ = c.Close()
	}
}

// begin records that a stream has begun on a connection.
func (all *connections) begin(c *connection) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, open := all.open[c]; open && !c.began {
		c.began = true
		all.forget(c)
	}
}

// leave records that a connection is closed, and reports whether it had no stream.
func (all *connections) leave(c *connection) (inVain bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, open := all.open[c]; !open {
		return false
	}
	delete(all.open, c)
	if c.began {
		return false
	}
	all.forget(c)
	return true
}

// forget no longer counts a connection as streamless.
func (all *connections) forget(c *connection) {
	if all.streamless[c.address]--; all.streamless[c.address] == 0 {
		delete(all.streamless, c.address)
	}
}

// proven returns the connections with a client certificate.
func (all *connections) proven() (list []*connection) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c := range all.open {
		if c.chain != nil {
			list = append(list, c)
		}
	}
	return list
}

// connection is the connection of some streams.
type connection struct {
	net.Conn

	guard   *guard
	arrival arrival
	address string // of the client; empty on this machine
	since   time.Time
	began   bool                // a stream has begun; guarded by connections
	chain   []*x509.Certificate // the verified client certificate chain; guarded likewise
	proof   proof               // owned by the goroutine that checks it
	checked atomic.Bool         // an unproven health check has begun

	closed chan struct{} // closed with the connection
	close  func() error

	// life ends, with the reason, when the client is no longer to be served here.
	life context.Context //nolint:containedctx // it is the connection's own, not that of a call
	end  context.CancelCauseFunc
}

func newConnection(conn net.Conn, g *guard) *connection {
	c := &connection{Conn: conn, guard: g, address: loopback.Remote(conn.RemoteAddr()), since: time.Now(), closed: make(chan struct{})}
	if c.arrival.raw = rawOf(conn); c.arrival.raw != nil {
		c.arrival.try = c.arrival.take
	}
	c.close = sync.OnceValue(func() error { close(c.closed); return conn.Close() })
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// from returns the origin of a connection, for people.
func (c *connection) from() string { return cmp.Or(c.address, "this machine") }

// shows records the client's certificates.
func (c *connection) shows(chain []*x509.Certificate) {
	c.guard.connections.mu.Lock()
	defer c.guard.connections.mu.Unlock()
	c.chain = chain
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	g := c.guard
	if inVain := g.connections.leave(c); inVain && !c.checked.Load() && time.Since(c.since) >= g.limits.Handshake {
		_ = g.Reject(badConnection, grpcstatus.Errorf(codes.DeadlineExceeded,
			"a connection from %s was closed: it opened no stream in %s; a handshake may take %s",
			c.from(), time.Since(c.since).Round(time.Millisecond), g.limits.Handshake))
	}
	return c.close()
}

// dismiss ends the streams of a connection with a reason, which their clients get, and then
// the connection itself. A client that came back on it would still use the old certificate.
func (c *connection) dismiss(why error) {
	c.end(why)
	time.AfterFunc(closeDelay, func() { _ = c.Close() })
}

// closeDelay is how long streams have to tell their clients why they end.
const closeDelay = time.Second

// rest waits for a duration, or until the connection is closed; then it returns false.
func (c *connection) rest(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	// Cases: the time is over; the connection is closed.
	select {
	case <-timer.C:
		return true
	case <-c.closed:
		return false
	}
}

// guarded is a listener that limits the open connections of one address without streams.
type guarded struct {
	net.Listener
	guard *guard
}

// Accept implements [net.Listener].
func (l guarded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, most := newConnection(conn, l.guard), l.guard.limits.NewConnections
		entered, stopping := l.guard.connections.enter(c, most)
		if entered {
			return c, nil
		}
		_ = conn.Close()
		if stopping {
			continue
		}
		_ = l.guard.Reject(tooManyConnections, grpcstatus.Errorf(codes.ResourceExhausted,
			"a connection from %s was closed: %d others have opened no stream yet, which is all one address may have; look for what connects there and says nothing",
			c.address, most))
	}
}
