package xds

import (
	"context"
	"crypto/x509"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// connections are those of a server that are open. It is told of each when it
// is accepted, when a stream begins on it, and when it is closed.
type connections struct {
	mu   sync.Mutex
	open map[*connection]struct{}
	// strangers are connections on which no stream has begun yet, by address.
	strangers map[string]int
}

func newConnections() *connections {
	return &connections{open: map[*connection]struct{}{}, strangers: map[string]int{}}
}

// enter takes in a connection, unless most of its address have not shown yet
// what they are for.
func (all *connections) enter(c *connection, most int) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if c.address != "" && all.strangers[c.address] >= most {
		return false
	}
	all.open[c] = struct{}{}
	c.strange = c.address != ""
	if c.strange {
		all.strangers[c.address]++
	}
	return true
}

// known notes that a stream has begun on a connection.
func (all *connections) known(c *connection) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.settle(c)
}

func (all *connections) leave(c *connection) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.open, c)
	all.settle(c)
}

// settle is called with the lock held.
func (all *connections) settle(c *connection) {
	if !c.strange {
		return
	}
	c.strange = false
	if all.strangers[c.address]--; all.strangers[c.address] == 0 {
		delete(all.strangers, c.address)
	}
}

// proven returns the connections whose clients have shown a certificate.
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

// connection is what streams are carried by.
type connection struct {
	net.Conn

	all     *connections
	address string // of the client; empty on this machine
	strange bool   // no stream has begun yet; guarded by all

	// chain is what the client has shown, set once the handshake has verified it;
	// guarded by all.
	chain []*x509.Certificate
	proof proof // the guard's

	// life ends, with the reason, when the client is no longer to be served here.
	life context.Context //nolint:containedctx // it is the connection's own, not that of a call
	end  context.CancelCauseFunc
}

func (all *connections) newConnection(conn net.Conn) *connection {
	c := &connection{Conn: conn, all: all, address: remoteAddress(conn.RemoteAddr())}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// shows notes what certificates the client has shown.
func (c *connection) shows(chain []*x509.Certificate) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.chain = chain
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.all.leave(c)
	return c.Conn.Close()
}

// dismiss ends the streams of a connection for a reason, which their clients
// are told, and then the connection itself: a client that came back on it would
// still show what it has shown.
func (c *connection) dismiss(why error) {
	c.end(why)
	time.AfterFunc(goodbye, func() { _ = c.Close() })
}

// goodbye is how long streams have to tell their clients why they end.
const goodbye = time.Second

// guarded is a listener that limits how many connections of one address may
// be open without a purpose.
type guarded struct {
	net.Listener
	server *Server
}

// Accept implements [net.Listener].
func (l guarded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, most := l.server.connections.newConnection(conn), l.server.limits.Strangers
		if l.server.connections.enter(c, most) {
			return c, nil
		}
		_ = conn.Close()
		_ = l.server.rejected.because(tooManyConnections, grpcstatus.Errorf(codes.ResourceExhausted,
			"a connection of %s was closed: %d others of that address have opened no stream yet, which is all one address may have; look for what connects there and says nothing",
			c.address, most))
	}
}
