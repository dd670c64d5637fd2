package istio_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// answeredBy is the header in which a backend says who it is.
const answeredBy = "answered-by"

// backend is a gRPC server with the standard health service.
type backend struct {
	name   string
	addr   *net.TCPAddr
	server *grpc.Server
}

// startBackend starts a backend on a free port.
func startBackend(t *testing.T, name string) *backend {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{name: name, addr: listener.Addr().(*net.TCPAddr)}
	b.server = grpc.NewServer(grpc.UnaryInterceptor(b.introduce))
	healthpb.RegisterHealthServer(b.server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(listener) }()
	t.Cleanup(func() {
		b.server.Stop()
		if err := <-served; err != nil {
			t.Errorf("backend %s: %v", name, err)
		}
	})
	return b
}

// introduce says who answers before anything is answered.
func (b *backend) introduce(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs(answeredBy, b.name)); err != nil {
		return nil, err
	}
	return next(ctx, request)
}
