package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"hash/maphash"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/push"
)

// Options are what the server needs from the program around it.
type Options struct {
	Kinds Kinds
	// Name tells clients which control plane they talk to.
	Name string
	// PrimedWithin is how long a stream waits for the first complete listing
	// before it is rejected; default 5 s.
	PrimedWithin time.Duration
	// TLS is what the listener shows and demands; nil serves plaintext.
	TLS *tls.Config
	// ClientCAs returns the authorities that clients are to be of now, the same
	// pointer while they stay the same; nil leaves streams alone once they began.
	ClientCAs func() *x509.CertPool
	// RootNamespace is that of the identities that may read configuration.
	RootNamespace string
	// Configuration names the types of configuration that somebody makes, the
	// newest version of each first, and Demand, if set, is called when one is asked for.
	Configuration []string
	Demand        func()
	// TrustDomains and MaxConnectionAge are as in [Config].
	TrustDomains     []string
	MaxConnectionAge time.Duration
	Limits           Limits
	Log              *slog.Logger
}

// Server serves one engine. Make one with [New].
type Server struct {
	engine       *push.Engine
	config       Options
	controlPlane []byte
	limits       Limits
	admission    *admission
	connections  *connections
	rejected     *rejections
	seed         maphash.Seed // of digests
	decoding     *semaphore.Weighted
	intake       intake.Limits
	log          *slog.Logger
	grpc         *grpc.Server
	nobodys      atomic.Int32 // types that were entered although nobody makes them
	stopping     chan struct{}
	halt         func() // closes stopping, once
}

const (
	// pingsFrom is how often a client may ping. Proxies do so every few seconds, to find
	// out soon that we are gone. It leaves room for those that ping every 2 s, and are
	// early now and then.
	pingsFrom = time.Second
	// idlePing: a client that is silent for so long is pinged, and has pingTimeout
	// to answer.
	idlePing    = 30 * time.Second
	pingTimeout = 10 * time.Second
	// buffers are per connection, and there may be tens of thousands of those.
	buffers = 16 << 10
	// window bounds what a client may have under way to us. It is fixed, since
	// gRPC would find it out with a ping after every acknowledgement.
	window = 1 << 20
	// streamWindow bounds it for each stream that nobody reads from at the time: whoever
	// reads makes room for the rest of a message.
	streamWindow = intake.Window
	// headers bounds those of one stream.
	headers = 64 << 10
	// decoded bounds the bytes of requests that are decoded at a time, by many
	// streams at once: what they become takes some times as much.
	decoded = 4 << 20
	// drainGrace is how long streams of a connection that is too old go on: as
	// streams of this protocol never end by themselves, that is all.
	drainGrace = 5 * time.Second
)

// New returns a server of an engine.
func New(engine *push.Engine, o Options) *Server {
	if o.PrimedWithin == 0 {
		o.PrimedWithin = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(loglimit.New(o.Log.Handler())) // each of its lines is caused by a client
	s := &Server{
		engine: engine, config: o, log: o.Log,
		controlPlane: appendString(nil, protowire.Number(fieldControlPlaneID), o.Name),
		limits:       o.Limits.withDefaults(),
		rejected:     &rejections{log: o.Log},
		seed:         maphash.MakeSeed(),
		decoding:     semaphore.NewWeighted(decoded),
		connections:  newConnections(),
		stopping:     make(chan struct{}),
	}
	s.admission = newAdmission(s.limits)
	s.intake = intake.Limits{
		Message: s.limits.Message, Piece: s.limits.Piece, Room: intake.NewRoom(s.limits.Receiving, s.limits.Message),
		TooMuch: func(err error) error { return s.rejected.record(tooMuch, err) },
		Stalled: func(err error) error { return s.rejected.record(stalled, err) },
		Advice:  "ask for less on a stream, or for everything by *",
	}
	s.halt = sync.OnceFunc(func() { close(s.stopping) })
	s.grpc = grpc.NewServer(s.transport()...)
	s.register()
	return s
}

func (s *Server) transport() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxHeaderListSize(headers),
		grpc.MaxConcurrentStreams(uint32(s.limits.StreamsPerConnection)), //nolint:gosec // it is not negative
		grpc.ConnectionTimeout(s.limits.Handshake),
		grpc.ReadBufferSize(buffers),
		grpc.WriteBufferSize(buffers),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsFrom, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: idlePing, Timeout: pingTimeout, MaxConnectionIdle: s.limits.Idle,
			MaxConnectionAge: s.config.MaxConnectionAge, MaxConnectionAgeGrace: drainGrace,
		}),
		grpc.Creds(handshake{s.credentials()}),
	}
}

func (s *Server) credentials() credentials.TransportCredentials {
	if s.config.TLS == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(s.config.TLS)
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
	if err := s.grpc.Serve(guarded{l, s}); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

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
