package xds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/push"
)

// Config is the part of the configuration that belongs to this output.
type Config struct {
	// Listen is a host and port, or unix:///path.
	Listen string `json:"listen"`
	// Insecure allows plaintext beyond loopback.
	Insecure bool `json:"insecure"`
}

// Validate reports a listener that would expose the catalog without meaning to.
func (c Config) Validate() error {
	if c.Listen == "" {
		return errors.New("listen: missing; give a host and port such as 127.0.0.1:15010")
	}
	if strings.HasPrefix(c.Listen, "unix://") {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %q is not a host and port such as 127.0.0.1:15010: %w", c.Listen, err)
	}
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() || c.Insecure {
		return nil
	}
	return fmt.Errorf("listen: %q is plaintext and not loopback; listen on 127.0.0.1, or set insecure: true if the network is trusted", c.Listen)
}

// Options are what the server needs from the program around it.
type Options struct {
	Types []push.TypeSpec // as the engine has them
	Kinds Kinds
	// Name tells clients which control plane they talk to.
	Name string
	// PrimedWithin is how long a stream waits for the first complete listing
	// before it is refused; default 5 s.
	PrimedWithin time.Duration
	Log          *slog.Logger
}

// Server serves one engine. Make one with [New].
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	engine       *push.Engine
	config       Options
	types        []push.TypeSpec
	byURL        map[string]push.Type
	controlPlane []byte
	log          *slog.Logger
	grpc         *grpc.Server
	stopping     chan struct{}
	halt         func() // closes stopping, once
}

const (
	// maxRequest is large because the first request of a delta stream lists all
	// that a big proxy holds.
	maxRequest = 32 << 20
	// idlePing and pingsFrom: clients may ping this often, and are pinged when silent.
	pingsFrom = 10 * time.Second
	idlePing  = 30 * time.Second
	handshake = 10 * time.Second
	// buffers are per connection, and there may be tens of thousands of those.
	buffers = 16 << 10
	// window bounds what a client may have under way to us. It is fixed, since
	// gRPC would find it out with a ping after every acknowledgement.
	window = 1 << 20
)

// New returns a server of an engine.
func New(engine *push.Engine, o Options) *Server {
	if o.PrimedWithin == 0 {
		o.PrimedWithin = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		engine: engine, config: o, types: o.Types, log: o.Log,
		byURL:        map[string]push.Type{},
		controlPlane: appendString(nil, protowire.Number(fieldControlPlaneID), o.Name),
		stopping:     make(chan struct{}),
	}
	s.halt = sync.OnceFunc(func() { close(s.stopping) })
	for t, spec := range o.Types {
		s.byURL[spec.Name] = push.Type(t)
	}
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.ConnectionTimeout(handshake),
		grpc.ReadBufferSize(buffers),
		grpc.WriteBufferSize(buffers),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsFrom, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: pingsFrom}),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s.grpc, s)
	return s
}

// Serve accepts connections until [Server.Stop].
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Stop lets no new stream in, waits until ctx ends for those there are, and
// closes the rest. Streams end when the engine stops.
func (s *Server) Stop(ctx context.Context) {
	s.halt()
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
	}
}

// StreamAggregatedResources serves the state-of-the-world variant.
func (s *Server) StreamAggregatedResources(wire discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.serve(wire, push.WholeState,
		func() (request, error) { return wire.Recv() },
		func(st *stream, t push.Type, m request) {
			st.subscriber.Request(st.sotwRequest(t, m.(*discoveryv3.DiscoveryRequest)))
		})
}

// DeltaAggregatedResources serves the incremental variant.
func (s *Server) DeltaAggregatedResources(wire discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.serve(wire, push.Delta,
		func() (request, error) { return wire.Recv() },
		func(st *stream, t push.Type, m request) {
			st.subscriber.Request(st.deltaRequest(t, m.(*discoveryv3.DeltaDiscoveryRequest)))
		})
}
