package streams

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/push"
)

// Options are a server's settings from the program.
type Options struct {
	// PrimedWithin is how long a stream waits for the first complete listing
	// before it is rejected; default 5 s.
	PrimedWithin time.Duration
	// TLS is the listener's certificate and its demands on clients; nil serves plaintext.
	TLS *tls.Config
	// ClientCAs returns the current authorities of clients, the same pointer while they stay
	// the same. Nil means that open streams are not checked.
	ClientCAs func() *certs.Authorities
	// Demands are the listener's demands on clients that prove an identity.
	Demands identity.Demands
	// Identity proves the identities of clients. Nil takes certificates alone, and gives no
	// client the right to everything.
	Identity *identity.Verifier
	// CertificatesAlone ignores tokens. Otherwise, where Identity takes tokens, clients have to prove
	// an identity in some way over TLS.
	CertificatesAlone bool
	// MaxConnectionAge ends connections when they are that old; zero never does.
	MaxConnectionAge time.Duration
	Log              *slog.Logger
}

// Secure serves with the certificates of a keeper; nil serves plaintext. The verifier proves
// the identities of clients; see [Options.Identity].
func (o *Options) Secure(keeper *certs.Keeper, settings TLS, verifier *identity.Verifier) {
	o.Demands = identity.Demands{TrustDomains: settings.TrustDomains, OwnLeaves: settings.AcceptOwnLeaves}
	o.Identity, o.CertificatesAlone = verifier, !settings.tokens
	if keeper == nil {
		return
	}
	o.TLS = keeper.TLS()
	if keeper.ClientCAs() != nil {
		o.ClientCAs = keeper.ClientCAs
	}
}

// takesTokens reports whether tokens are proofs of identity.
func (o *Options) takesTokens() bool { return !o.CertificatesAlone && o.Identity.TakesTokens() }

// Server serves streams of one engine, or guards streams that need none. [New] makes one.
type Server struct {
	*rejections
	Log *slog.Logger // limited

	grpc     *grpc.Server // its services are registered by [Server.RegisterService] alone
	engine   *push.Engine // nil if the streams have no subscribers
	options  Options
	limits   Limits
	guard    *guard
	decoding *semaphore.Weighted
	intake   intake.Limits
	stopping chan struct{}
	halt     func()       // closes stopping, once
	ending   atomic.Int64 // how long streams without an engine take to end at a stop, in nanoseconds
}

const (
	// pingsFrom is the shortest interval between a client's pings. Proxies ping every few
	// seconds, to detect soon that the server is gone. It leaves room for clients that ping
	// every 2 s, and are early now and then.
	pingsFrom = time.Second
	// PingTimeout is how long a peer has to answer a ping.
	PingTimeout = 10 * time.Second
	// buffers is the bytes of a buffer per connection; there may be tens of thousands of them.
	buffers = 16 << 10
	// Window bounds a peer's unread bytes on a connection. It is fixed, since gRPC would
	// otherwise measure it with a ping after every acknowledgement.
	Window = 1 << 20
	// StreamWindow bounds the unread bytes of each stream without a reader at the time. A
	// reader makes room for the rest of a message.
	StreamWindow = intake.Window
	// headers bounds the bytes of one stream's headers.
	headers = 64 << 10
	// decoded bounds the bytes of requests that are decoded concurrently: a decoded request
	// takes a multiple of its bytes.
	decoded = 4 << 20
	// drainGrace is how long streams of a connection that is too old go on. Streams of these
	// protocols never end by themselves, so a longer grace would not help.
	drainGrace = 5 * time.Second
)

// New returns a server of an engine. Advice is the alternative to sending a larger request.
// Without an engine its streams are only guarded: they use [Stream.Serve] and not
// [Stream.Connect].
func New(engine *push.Engine, o Options, l Limits, advice string) *Server {
	if o.PrimedWithin == 0 {
		o.PrimedWithin = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(loglimit.New(o.Log.Handler())) // a client causes each of its lines
	l = l.WithDefaults()
	rejected := &rejections{log: o.Log}
	s := &Server{
		rejections: rejected, Log: o.Log, engine: engine, options: o, limits: l,
		guard:    &guard{rejected, l, o.PrimedWithin, newAdmission(l), newConnections()},
		decoding: semaphore.NewWeighted(decoded), stopping: make(chan struct{}),
	}
	s.intake = intake.Limits{
		Message: l.Message, Piece: l.Piece, Room: intake.NewRoom(l.Receiving, l.Message),
		TooMuch: func(err error) error { return s.Reject(TooMuch, err) },
		Stalled: func(err error) error { return s.Reject(stalled, err) },
		Advice:  advice,
	}
	s.halt = sync.OnceFunc(func() { close(s.stopping) })
	s.grpc = grpc.NewServer(s.transport()...)
	return s
}

func (s *Server) transport() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(NewCodec()),
		grpc.MaxHeaderListSize(headers),
		grpc.MaxConcurrentStreams(uint32(s.limits.StreamsPerConnection)), //nolint:gosec // it is not negative
		grpc.ConnectionTimeout(s.limits.Handshake),
		grpc.ReadBufferSize(buffers),
		grpc.WriteBufferSize(buffers),
		grpc.StaticStreamWindowSize(StreamWindow),
		grpc.StaticConnWindowSize(Window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsFrom, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: s.limits.Ping, Timeout: PingTimeout, MaxConnectionIdle: s.limits.Idle,
			MaxConnectionAge: s.options.MaxConnectionAge, MaxConnectionAgeGrace: drainGrace,
		}),
		grpc.Creds(handshake{s.credentials()}),
	}
}

func (s *Server) credentials() credentials.TransportCredentials {
	if s.options.TLS == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(s.options.TLS)
}

// Run runs the engine if there is one, and serves on a listener unless that is nil, until ctx
// ends.
// Readiness has ended by then. Streams are ended one after the other within drain, so that
// their clients do not all come to another server at once.
func (s *Server) Run(ctx context.Context, l net.Listener, drain time.Duration) error {
	parts, ctx := errgroup.WithContext(ctx)
	running, stopped := context.WithCancel(context.WithoutCancel(ctx))
	if s.engine != nil {
		parts.Go(func() error { s.engine.Run(running); return nil })
	}
	if l != nil {
		parts.Go(func() error { return s.Serve(l) })
	}
	parts.Go(func() error {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		defer stopped()
		s.Stop(limit)
		return nil
	})
	return parts.Wait()
}

// Serve accepts connections until [Server.Stop], which may have come before.
func (s *Server) Serve(l net.Listener) error {
	if s.options.ClientCAs != nil {
		ended := make(chan struct{})
		var checks sync.WaitGroup
		checks.Go(func() { s.guard.connections.recheck(s.limits.Recheck, s.options.ClientCAs, ended) })
		defer checks.Wait()
		defer close(ended)
	}
	if err := s.grpc.Serve(guarded{l, s.guard}); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Close ends every stream and every connection at once.
func (s *Server) Close() {
	s.halt()
	s.guard.connections.closeStreamless()
	s.grpc.Stop()
}

// Stop rejects new streams. It ends the open ones over four fifths of the time until ctx
// ends, and then closes the rest.
func (s *Server) Stop(ctx context.Context) {
	over := time.Duration(0)
	if end, limited := ctx.Deadline(); limited {
		over = time.Until(end) * 4 / 5
	}
	s.ending.Store(int64(over))
	s.halt()
	s.guard.connections.closeStreamless()
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	if s.engine != nil {
		s.engine.EndAll(ctx, over)
	}
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
	}
}
