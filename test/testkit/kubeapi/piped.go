package kubeapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Piped is a server that is reached without a network, so that a test of fake
// time can have one: nothing in it waits for the machine. Make one with [NewPiped]
// inside of the test's bubble, and [Piped.Close] it there.
type Piped struct {
	*Server
	over   *http.Transport
	server *http.Server
	pipes  *pipes
	served chan struct{}
}

// NewPiped starts a server.
func NewPiped() *Piped {
	s := &Server{objects: map[string]Object{}, owners: newOwners(), watches: map[*watch]struct{}{}}
	p := &Piped{Server: s, pipes: &pipes{made: make(chan net.Conn), closed: make(chan struct{}), open: map[net.Conn]bool{}}, served: make(chan struct{})}
	s.cut = p.pipes.cut
	p.server = &http.Server{Handler: http.HandlerFunc(s.serve)} //nolint:gosec // it serves one test
	p.over = &http.Transport{DialContext: p.pipes.dial}
	go func() { defer close(p.served); _ = p.server.Serve(p.pipes) }()
	return p
}

// Config is how to reach the server.
func (p *Piped) Config() *rest.Config {
	return &rest.Config{Host: "http://api.test", Transport: p.over}
}

// Close ends the server and every connection to it.
func (p *Piped) Close() {
	p.Down(true)
	p.over.CloseIdleConnections()
	_ = p.server.Close()
	<-p.served
}

// pipes are connections that are no more than memory.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	down bool
	open map[net.Conn]bool // the clients' ends
}

var errRefused = errors.New("connection refused")

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return nil, errRefused
	}
	client, server := net.Pipe()
	select {
	case p.made <- server:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open[client] = true
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, errRefused
	}
}

// cut ends every connection, and rejects others while the server is down.
func (p *pipes) cut(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if !down {
		return
	}
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }
