package streams

import (
	"bytes"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	grpcstatus "google.golang.org/grpc/status"
)

// carrier is the connection that HTTP/2 uses, without its TLS. A client's bytes may wait
// here before they are processed.
type carrier struct {
	net.Conn
	by     *connection
	frames frames
}

// readyCarrier is a carrier without TLS, which waits for bytes without a buffer: see
// [connection.ReadOnReady].
type readyCarrier struct{ carrier }

// carry returns the carrier of a connection; secured is the connection after the handshake.
func carry(secured net.Conn, by *connection) net.Conn {
	if secured == net.Conn(by) {
		return &readyCarrier{carrier{Conn: secured, by: by}}
	}
	return &carrier{Conn: secured, by: by}
}

// Read implements [net.Conn].
func (c *carrier) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.admit(b[:n]) {
		return 0, net.ErrClosed
	}
	return n, err
}

// ReadOnReady is like the connection's.
func (c *readyCarrier) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buffer, n, err := c.by.ReadOnReady(size, pool)
	if buffer != nil && !c.admit((*buffer)[:n]) {
		pool.Put(buffer)
		return nil, 0, net.ErrClosed
	}
	return buffer, n, err
}

// admit delays a client's bytes if it opens streams faster than the limit of one address,
// whether or not it resets them at once. It reports whether the connection goes on: one
// that would have to wait for too long is closed.
func (c *carrier) admit(text []byte) bool {
	opened := c.frames.opened(text)
	if opened == 0 {
		return true
	}
	g := c.by.guard
	wait, ok := g.admission.take(c.by.address, opened, g.longest)
	if !ok {
		_ = g.Reject(tooMany, grpcstatus.Errorf(codes.ResourceExhausted,
			"a connection from %s was closed: more than %g streams a second begin there, which is all that are let in of one address; look for what opens them",
			c.by.from(), g.limits.NewStreamsPerClient.PerSecond))
		_ = c.by.Close()
		return false
	}
	return c.by.rest(wait)
}

// tooManyPings is the end of gRPC's GOAWAY frame for a client that pings too often. It is
// the whole frame except the last stream; the frame is of the kind 7 and has the code 11.
// gRPC reports the event in no other way.
var (
	tooManyPings    = []byte("\x00\x00\x00\x0btoo_many_pings")
	tooManyPingsMin = 9 + 4 + len(tooManyPings)
)

// Write implements [net.Conn]. The check for the GOAWAY frame costs a comparison.
func (c *carrier) Write(b []byte) (int, error) {
	if len(b) >= tooManyPingsMin && bytes.HasSuffix(b, tooManyPings) {
		_ = c.by.guard.Reject(tooManyPing, grpcstatus.Errorf(codes.ResourceExhausted,
			"a connection from %s was closed: it was pinged more often than every 2s again and again; raise the keepalive interval of the client", c.by.from()))
	}
	return c.Conn.Write(b)
}
