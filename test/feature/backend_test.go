package feature_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
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
	b, err := listenBackend(t, name, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startBackends starts several.
func startBackends(t *testing.T, names ...string) []*backend {
	t.Helper()
	backends := make([]*backend, len(names))
	for i, name := range names {
		backends[i] = startBackend(t, name)
	}
	return backends
}

func listenBackend(t *testing.T, name, address string) (*backend, error) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
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
	return b, nil
}

// introduce says who answers before anything is answered.
func (b *backend) introduce(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs(answeredBy, b.name)); err != nil {
		return nil, err
	}
	return next(ctx, request)
}

// Stop ends the backend as a rolling update does: what is under way is answered.
func (b *backend) Stop() { b.server.GracefulStop() }

// Port is where the backend listens.
func (b *backend) Port() string { return strconv.Itoa(b.addr.Port) }

// Endpoint is the backend as an endpoint of a ServiceEntry or the
// specification of a WorkloadEntry. More are further fields, such as "weight: 3".
func (b *backend) Endpoint(more ...string) string {
	fields := append([]string{
		fmt.Sprintf("address: %q", b.addr.IP), fmt.Sprintf("ports: {grpc: %d}", b.addr.Port),
	}, more...)
	return "{" + strings.Join(fields, ", ") + "}"
}

// endpoints are several backends as endpoints.
func endpoints(backends ...*backend) []string {
	list := make([]string, len(backends))
	for i, b := range backends {
		list[i] = b.Endpoint()
	}
	return list
}
