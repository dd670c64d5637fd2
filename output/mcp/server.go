package mcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/push"
)

// Options are what the server needs from the program around it.
type Options struct {
	// RootNamespace is that of control planes: over mutual TLS no other identity may
	// read configuration.
	RootNamespace string
	// PrimedWithin is how long a stream waits for the first complete listing before
	// it is rejected; default 5 s. A sink is dialled only after that listing.
	PrimedWithin time.Duration
	// TLS is what the listener shows and demands; nil serves plaintext.
	TLS *tls.Config
	// ClientCAs returns the authorities that sinks are to be of now, the same pointer
	// while they stay the same; nil if sinks prove nothing.
	ClientCAs func() *x509.CertPool
	// TrustDomains are as in [TLS].
	TrustDomains []string
	Limits       Limits
	Log          *slog.Logger
}

// Server serves one engine, to sinks that dial it and to sinks that it dials. Make
// one with [New].
type Server struct {
	engine    *push.Engine
	config    Options
	limits    Limits
	admission *admission
	watched   *watched
	rejected  *rejections
	intake    intake.Limits
	decoding  *semaphore.Weighted
	log       *slog.Logger
	grpc      *grpc.Server
	stopping  chan struct{}
	halt      func() // closes stopping, once
}

// kind is that of every client: all sinks get the same.
const kind = "mcp"

const (
	// pingsFrom is how often a sink may ping; Pilot does so every 30 s.
	pingsFrom = time.Second
	// idlePing: a sink that is silent for so long is pinged, and has pingTimeout to
	// answer.
	idlePing    = 30 * time.Second
	pingTimeout = 10 * time.Second
	buffers     = 32 << 10 // per connection
	window      = 1 << 20  // what a sink may have under way on a connection
	headers     = 64 << 10 // of one stream
	decoded     = 8 << 20  // bytes of requests that are decoded at a time
)

// New returns a server of an engine.
func New(engine *push.Engine, o Options) *Server {
	if o.PrimedWithin == 0 {
		o.PrimedWithin = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(loglimit.New(o.Log.Handler())) // each of its lines is caused by a sink
	s := &Server{
		engine: engine, config: o, log: o.Log, limits: o.Limits.withDefaults(),
		rejected: &rejections{log: o.Log}, decoding: semaphore.NewWeighted(decoded), stopping: make(chan struct{}),
	}
	s.admission, s.watched = newAdmission(s.limits), newWatched()
	s.intake = intake.Limits{
		Message: s.limits.Message, Piece: s.limits.Piece, Room: intake.NewRoom(s.limits.Receiving, s.limits.Message),
		TooMuch: func(err error) error { return s.rejected.record(tooMuch, err) },
		Stalled: func(err error) error { return s.rejected.record(stalled, err) },
		Advice:  "ask without initial_resource_versions",
	}
	s.halt = sync.OnceFunc(func() { close(s.stopping) })
	s.grpc = grpc.NewServer(s.transport()...)
	s.grpc.RegisterService(&grpc.ServiceDesc{ServiceName: "istio.mcp.v1alpha1.ResourceSource", Streams: []grpc.StreamDesc{{
		StreamName: "EstablishResourceStream", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, wire grpc.ServerStream) (err error) {
			defer s.survive(&err)
			return s.serve(wire)
		},
	}}}, nil)
	return s
}

func (s *Server) transport() []grpc.ServerOption {
	security := insecure.NewCredentials()
	if s.config.TLS != nil {
		security = credentials.NewTLS(s.config.TLS)
	}
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxHeaderListSize(headers),
		grpc.MaxConcurrentStreams(uint32(s.limits.StreamsPerConnection)), //nolint:gosec // it is not negative
		grpc.ConnectionTimeout(s.limits.Handshake),
		grpc.ReadBufferSize(buffers),
		grpc.WriteBufferSize(buffers),
		grpc.StaticStreamWindowSize(intake.Window),
		grpc.StaticConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsFrom, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: pingTimeout, MaxConnectionIdle: s.limits.Idle}),
		grpc.Creds(security),
	}
}

// Serve accepts connections until [Server.Stop], which may have come before.
func (s *Server) Serve(l net.Listener) error {
	if s.config.ClientCAs != nil {
		ended := make(chan struct{})
		var guard sync.WaitGroup
		guard.Go(func() { s.guard(ended) })
		defer guard.Wait()
		defer close(ended)
	}
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Stop lets no new stream in, waits until ctx ends for those there are, and closes the
// rest. Streams end when the engine stops.
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
