package mcp

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// arrival is a stream of a peer that has dialled.
type arrival struct {
	wire grpc.ServerStream
	from string
	over chan struct{} // closed when it is not spoken with any more
	once *sync.Once
}

func (a *arrival) end() { a.once.Do(func() { close(a.over) }) }

// listen waits for a peer to dial, and speaks with it until its stream ends. The
// first one is the source; another one meanwhile is turned away.
func (s *Source) listen(ctx context.Context, sink source.Sink) error {
	options, err := s.serverOptions()
	if err != nil {
		return err
	}
	listener, err := s.config.bind(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w; choose another address or stop what listens there", err)
	}
	server, arrivals := grpc.NewServer(options...), make(chan *arrival, 1)
	s.away.begin()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: mcp.ResourceSink_ServiceDesc.ServiceName,
		Streams: []grpc.StreamDesc{{
			StreamName: mcp.ResourceSink_ServiceDesc.Streams[0].StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.arrive(stream, arrivals) },
		}},
	}, nil)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(&fewConns{Listener: listener}) })
	defer serving.Wait()
	defer server.Stop()
	return s.await(ctx, arrivals, sink)
}

// await waits for the first peer. That there is none yet is said once.
func (s *Source) await(ctx context.Context, arrivals <-chan *arrival, sink source.Sink) error {
	var late <-chan time.Time
	if !s.waited {
		timer := time.NewTimer(s.config.pace.rest)
		defer timer.Stop()
		late = timer.C
	}
	// Cases: a peer; none for a while; the end.
	select {
	case a := <-arrivals:
		defer a.end()
		s.waited, s.from = true, a.from
		return s.session(ctx, a.wire, a.end, sink)
	case <-late:
		s.waited = true
		return fmt.Errorf("no source has dialled %s yet", s.config.Listen)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// arrive hands a stream over, and holds it until it is not spoken with any more.
func (s *Source) arrive(stream grpc.ServerStream, arrivals chan<- *arrival) error {
	from := "an unknown address"
	if p, ok := grpcpeer.FromContext(stream.Context()); ok {
		from = p.Addr.String()
	}
	if other, free := s.away.enter(from); !free {
		return grpcstatus.Errorf(codes.ResourceExhausted, "another source, at %s, is connected, and one alone is taken", other)
	}
	a := &arrival{wire: stream, from: from, over: make(chan struct{}), once: new(sync.Once)}
	arrivals <- a // has room for the only one
	// Cases: it is over here, or there.
	select {
	case <-a.over:
		return grpcstatus.Error(codes.Aborted, "the stream is not followed any more: dial again")
	case <-stream.Context().Done():
		return nil
	}
}

func (s *Source) serverOptions() ([]grpc.ServerOption, error) {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(s.codec()),
		grpc.MaxRecvMsgSize(s.config.largest(s.env.Memory)),
		grpc.MaxConcurrentStreams(4),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(s.config.pace.connect),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if !s.config.TLS.enabled() {
		return options, nil
	}
	keeper, err := s.config.TLS.server(s.env.Log)
	if err != nil {
		return nil, err
	}
	return append(options, grpc.Creds(credentials.NewTLS(keeper.TLS()))), nil
}

// bind listens on the address of the configuration.
func (c *Config) bind(ctx context.Context) (net.Listener, error) {
	if c.listener != nil {
		return c.listener(ctx, c.Listen)
	}
	var l net.ListenConfig
	return l.Listen(ctx, "tcp", c.Listen)
}

// mostConns bounds the connections of those who are not the source.
const mostConns = 16

// fewConns closes connections beyond a number.
type fewConns struct {
	net.Listener
	mu   sync.Mutex
	open int
}

// Accept implements [net.Listener].
func (l *fewConns) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.add(1) <= mostConns {
			return &counted{Conn: conn, close: sync.OnceValue(func() error { l.add(-1); return conn.Close() })}, nil
		}
		l.add(-1)
		_ = conn.Close()
	}
}

func (l *fewConns) add(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
	return l.open
}

type counted struct {
	net.Conn
	close func() error
}

// Close implements [net.Conn].
func (c *counted) Close() error { return c.close() }

// turned is who is connected to a listener, and who was turned away.
type turned struct {
	mu    sync.Mutex
	peer  string
	count int
	last  string
	at    time.Time
}

// begin is when nobody is connected.
func (t *turned) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer = ""
}

// enter makes one the peer, unless there is another.
func (t *turned) enter(from string) (other string, free bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer == "" {
		t.peer = from
		return "", true
	}
	t.count, t.last, t.at = t.count+1, from, time.Now()
	return t.peer, false
}

func (t *turned) notices() []source.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		return nil
	}
	return []source.Notice{{
		Object: "source at " + t.last,
		Text: fmt.Sprintf("it dialled at %s, while %s was connected, and was turned away, as others %d times before: one peer alone is taken; give it a source of its own",
			t.at.UTC().Format(time.RFC3339), t.peer, t.count-1),
	}}
}
