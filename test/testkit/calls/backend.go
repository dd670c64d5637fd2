package calls

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// answeredBy is the header in which a backend says who it is.
const answeredBy = "answered-by"

// Backend is a gRPC server with the standard health service, which says who it
// is in the header of every answer. It ends with the test.
type Backend struct {
	Name string
	Addr *net.TCPAddr // where it listens

	server *grpc.Server
	calls  atomic.Int64
}

// Listen starts a backend at an address. The error is that of listening.
func Listen(t testing.TB, name, address string) (*Backend, error) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	b := &Backend{Name: name, Addr: listener.Addr().(*net.TCPAddr)}
	b.server = b.newServer()
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(listener) }()
	t.Cleanup(func() {
		b.server.Stop()
		if err := <-served; err != nil {
			t.Errorf("backend %s: %v", name, err)
		}
	})
	return b, nil
}

// NewServer returns the server of a backend, for a test that serves HTTP/2 by itself.
func NewServer(name string) *grpc.Server { return (&Backend{Name: name}).newServer() }

func (b *Backend) newServer() *grpc.Server {
	server := grpc.NewServer(grpc.UnaryInterceptor(b.introduce))
	healthpb.RegisterHealthServer(server, health.NewServer())
	return server
}

// introduce says who answers before anything is answered.
func (b *Backend) introduce(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	b.calls.Add(1)
	if err := grpc.SetHeader(ctx, metadata.Pairs(answeredBy, b.Name)); err != nil {
		return nil, err
	}
	return next(ctx, request)
}

// Stop ends the backend as a rolling update does: what is under way is answered.
func (b *Backend) Stop() { b.server.GracefulStop() }

// Calls is how many calls the backend got so far.
func (b *Backend) Calls() int64 { return b.calls.Load() }
