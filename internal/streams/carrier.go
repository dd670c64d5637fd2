package streams

import (
	"bytes"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	grpcstatus "google.golang.org/grpc/status"
)

// carrier is what HTTP/2 reads from and writes to: a connection without its TLS.
// What a client sends may wait here before anybody looks at it.
type carrier struct {
	net.Conn
	by     *connection
	frames frames
}

// readyCarrier is a carrier without TLS, which waits for something to read
// without a buffer: see [connection.ReadOnReady].
type readyCarrier struct{ carrier }

// carry returns what carries the streams of a connection; secured is what a
// handshake has made of it.
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

// ReadOnReady is as that of the connection.
func (c *readyCarrier) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buffer, n, err := c.by.ReadOnReady(size, pool)
	if buffer != nil && !c.admit((*buffer)[:n]) {
		pool.Put(buffer)
		return nil, 0, net.ErrClosed
	}
	return buffer, n, err
}

// admit has what a client says wait if it opens streams faster than those of one
// address may, whether or not it resets them at once. It reports whether the
// connection goes on: one that would have to wait for too long is closed.
func (c *carrier) admit(text []byte) bool {
	opened := c.frames.opened(text)
	if opened == 0 {
		return true
	}
	s := c.by.server
	wait, ok := s.admission.take(c.by.address, opened, s.options.PrimedWithin)
	if !ok {
		_ = s.Reject(tooMany, grpcstatus.Errorf(codes.ResourceExhausted,
			"a connection from %s was closed: more than %g streams a second begin there, which is all that are let in of one address; look for what opens them",
			c.by.from(), s.limits.NewStreamsPerClient.PerSecond))
		_ = c.by.Close()
		return false
	}
	return c.by.rest(wait)
}

// rest waits for so long, or until the connection is closed; then it is false.
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

// tooManyPings is how gRPC ends a connection on which a client pings too often:
// the whole of a GOAWAY frame but for the last stream, which is of the kind 7 and
// has the code 11. gRPC tells nobody else of it.
var (
	tooManyPings    = []byte("\x00\x00\x00\x0btoo_many_pings")
	tooManyPingsMin = 9 + 4 + len(tooManyPings)
)

// Write implements [net.Conn]. That it looks for the last words costs a comparison.
func (c *carrier) Write(b []byte) (int, error) {
	if len(b) >= tooManyPingsMin && bytes.HasSuffix(b, tooManyPings) {
		_ = c.by.server.Reject(tooManyPing, grpcstatus.Errorf(codes.ResourceExhausted,
			"a connection from %s was closed: it was pinged more often than every 2s again and again; raise the keepalive interval of the client", c.by.from()))
	}
	return c.Conn.Write(b)
}
