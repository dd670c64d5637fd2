package grpc_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay is an address that passes connections on to another one, until it cuts them.
type relay struct {
	Address string

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// newRelay starts a relay that ends with the test.
func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Address: listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			onward, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = conn.Close() // the other side is down
				continue
			}
			r.add(conn, onward)
			running.Go(func() { pass(conn, onward) })
			running.Go(func() { pass(onward, conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.Cut()
		running.Wait()
	})
	return r
}

// Cut closes all connections.
func (r *relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.conns = nil
}

func (r *relay) add(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
}

// pass copies until one side closes, and closes both.
func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
	_ = to.Close()
}
