package istio_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// answeredBy is the header in which a backend says who it is.
const answeredBy = "answered-by"

// backend is a gRPC server with the standard health service.
type backend struct {
	name    string
	address string
	server  *grpc.Server
	calls   atomic.Int64 // that it got so far
}

// startBackend starts a backend at an address. That may be taken for a moment
// after a free port was looked for: a process that is being started has a copy
// of what was open, until it runs a program of its own.
func startBackend(t *testing.T, name, address string) *backend {
	t.Helper()
	var config net.ListenConfig
	var listener net.Listener
	await(t, "a listener", func() (err error) {
		listener, err = config.Listen(t.Context(), "tcp", address)
		return err
	})
	b := &backend{name: name, address: address}
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

// freePort finds a port for backends of one service, each on an address of its
// own: a Service Center knows no ports but those of the instances.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := cluster.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// introduce says who answers before anything is answered.
func (b *backend) introduce(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	b.calls.Add(1)
	if err := grpc.SetHeader(ctx, metadata.Pairs(answeredBy, b.name)); err != nil {
		return nil, err
	}
	return next(ctx, request)
}
