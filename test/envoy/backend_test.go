package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// The headers in which a backend says whose it is, and which protocol it was
// spoken to in.
const (
	answeredBy = "answered-by"
	spokenIn   = "spoken-in"
)

// backend is an HTTP server, of HTTP/1.1 and of HTTP/2 without TLS, that says of
// which service it is.
type backend struct {
	t       testing.TB
	Name    string
	Address string
	Port    uint32

	server   *http.Server
	served   chan error
	requests atomic.Int64
	failing  atomic.Bool  // it answers 500
	holding  atomic.Bool  // it answers nothing
	held     atomic.Int64 // requests that wait for an answer
}

func startBackend(t testing.TB, service, name string) *backend {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().(*net.TCPAddr)
	b := &backend{t: t, Name: name, Address: "127.0.0.1", Port: uint32(at.Port), served: make(chan error, 1)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	b.server = &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		if b.holding.Load() {
			b.held.Add(1)
			<-r.Context().Done()
			b.held.Add(-1)
			return
		}
		w.Header().Set(answeredBy, service)
		w.Header().Set(spokenIn, r.Proto)
		if r.Header.Get(echoes) != "" {
			echo(w, r)
			return
		}
		if b.failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})}
	go func() { b.served <- b.server.Serve(listener) }()
	t.Cleanup(b.Stop)
	return b
}

// Stop ends the backend as a rolling update does: what is under way is answered.
// It may be called again.
func (b *backend) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), until.Patience)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close()
	}
	if err := <-b.served; !errors.Is(err, http.ErrServerClosed) {
		b.t.Errorf("backend %s: %v", b.Name, err)
	}
	b.served <- http.ErrServerClosed
}

// Die ends the backend as a crash does: its connections end, whatever is under way.
func (b *backend) Die() { _ = b.server.Close() }

// endpoint is the backend as it is written, with its port under a name.
func (b *backend) endpoint(portName string) endpoint {
	return endpoint{Address: b.Address, Ports: map[string]uint32{portName: b.Port}}
}

func (b *backend) destination() string { return fmt.Sprintf("%s:%d", b.Address, b.Port) }
