package demo

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// answeredBy is the header in which a backend says who it is.
const answeredBy = "answered-by"

// backend is a gRPC server with the standard health service.
type backend struct {
	healthpb.UnimplementedHealthServer
	name   string
	listen net.Listener
	server *grpc.Server
	served sync.WaitGroup
}

// Check implements the health service: who can answer is well.
func (b *backend) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs(answeredBy, b.name)); err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func (b *backend) address() string { return b.listen.Addr().String() }

func (b *backend) instance() instance {
	at := b.listen.Addr().(*net.TCPAddr)
	return instance{b.name, at.IP.String(), at.Port}
}

// stop ends the backend as a crash would: connections break.
func (b *backend) stop() {
	b.server.Stop()
	b.served.Wait()
}

// fleet is the backends that run. It belongs to one goroutine at a time.
type fleet struct{ running []*backend }

// start starts a backend at an address.
func (f *fleet) start(ctx context.Context, name, at string) (*backend, error) {
	var lc net.ListenConfig
	listen, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("starting the backend %s: %w", name, err)
	}
	b := &backend{name: name, listen: listen, server: grpc.NewServer()}
	healthpb.RegisterHealthServer(b.server, b)
	b.served.Go(func() { _ = b.server.Serve(listen) }) // Serve ends only when the server is stopped
	f.running = append(f.running, b)
	return b, nil
}

func (f *fleet) find(name string) *backend {
	for _, b := range f.running {
		if b.name == name {
			return b
		}
	}
	panic("demo: no backend " + name) // the steps name only started backends
}

// kill stops a backend.
func (f *fleet) kill(name string) {
	f.running = slices.DeleteFunc(f.running, func(b *backend) bool {
		if b.name != name {
			return false
		}
		b.stop()
		return true
	})
}

func (f *fleet) close() {
	for _, b := range f.running {
		b.stop()
	}
	f.running = nil
}
