package servicecenter

import (
	"context"
	"net"
	"sync"
)

// Memory is a listener without a network. A connection is a pipe in this process, which
// time in a bubble of testing/synctest can wait for.
type Memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewMemory makes a listener for [Server.Serve].
func NewMemory() *Memory { return &Memory{conns: make(chan net.Conn), done: make(chan struct{})} }

// DialContext connects to the server, ignoring the address. It fits into an http.Transport.
func (m *Memory) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (m *Memory) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (m *Memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

// Addr implements [net.Listener]. It is a name that nothing resolves.
func (m *Memory) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }

func (memoryAddr) String() string { return "servicecenter.invalid:80" }
