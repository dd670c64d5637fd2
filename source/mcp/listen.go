package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/source"
)

// arrival is a stream of a peer that has dialled.
type arrival struct {
	wire wire
	from string
	over chan struct{} // closed when the session has ended
	once *sync.Once
}

func (a *arrival) end() { a.once.Do(func() { close(a.over) }) }

// listen waits for a peer to dial, and runs a session until its stream ends. The
// first peer is the source; another peer meanwhile is rejected.
func (s *Source) listen(ctx context.Context, sink source.Sink) error {
	server, err := s.server()
	if err != nil {
		return err
	}
	listener, err := s.config.bind(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w; choose another address, or stop the process that uses it", err)
	}
	s.away.begin()
	s.rejected.begin(server)
	arrivals := make(chan *arrival, 1)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: mcp.ResourceSink_ServiceDesc.ServiceName,
		Streams: []grpc.StreamDesc{{
			StreamName: mcp.ResourceSink_ServiceDesc.Streams[0].StreamName, ServerStreams: true, ClientStreams: true,
			Handler: streams.Handler(func(stream *streams.Stream) error { return s.arrive(server, stream, arrivals) }),
		}},
	}, nil)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()
	return s.await(ctx, arrivals, sink)
}

// await waits for the first peer. The error that none has dialled is returned once.
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
		return s.session(a.wire, a.end, sink).run(ctx)
	case <-late:
		s.waited = true
		return fmt.Errorf("no source has connected to %s yet; see the log for rejected streams", s.config.Listen)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// arrive hands a stream over, and blocks until its session ends.
func (s *Source) arrive(server *streams.Server, stream *streams.Stream, arrivals chan<- *arrival) error {
	if err := s.config.TLS.admits(stream.Who); err != nil {
		return server.Reject(streams.NotWho, err)
	}
	from := cmp.Or(stream.Who.From, "an unknown address")
	if other, free := s.away.enter(from); !free {
		return grpcstatus.Errorf(codes.ResourceExhausted, "another source, at %s, is connected, and one alone is taken", other)
	}
	wire := &inbound{Stream: stream, codec: s.codec()}
	a := &arrival{wire: wire, from: from, over: make(chan struct{}), once: new(sync.Once)}
	stream.OnStall(func(why error) { wire.stalled.Store(&why); a.end() })
	arrivals <- a // has room for the only one
	// Cases: the session ends here; the peer's proof holds no more; the peer ends the stream.
	select {
	case <-a.over:
		return grpcstatus.Error(codes.Aborted, "the stream is not followed any more: dial again")
	case <-stream.Over():
		return stream.Untrusted()
	case <-stream.Context().Done():
		return nil
	}
}

// inbound is a stream that a peer has opened. Messages come in pieces, each with its
// own time limit.
type inbound struct {
	*streams.Stream
	codec   codec
	stalled atomic.Pointer[error] // why the stream was ended within a message
}

// RecvMsg implements [wire].
func (w *inbound) RecvMsg(m any) error {
	text, err := w.Text()
	if err != nil {
		if why := w.stalled.Load(); why != nil {
			return *why
		}
		return err
	}
	w.codec.read(text, m.(*answer))
	return nil
}

// server makes the guarded server of a run.
func (s *Source) server() (*streams.Server, error) {
	keeper, err := s.config.TLS.server(s.env.Log)
	if err != nil {
		return nil, err
	}
	options := streams.Options{Log: s.env.Log}
	options.Secure(keeper, s.config.TLS.listening(), s.verifier)
	return streams.New(nil, options, streams.Limits{
		Message: s.config.largest(s.env.Memory), Handshake: s.config.pace.connect, Ping: 10 * time.Second,
		StreamsPerConnection: 4, StreamsPerClient: 16, NewStreams: streams.Rate{PerSecond: 100, Burst: 200},
	}, "have the source send less at once, or give Isthmus more memory (GOMEMLIMIT)"), nil
}

// bind listens on the address of the configuration.
func (c *Config) bind(ctx context.Context) (net.Listener, error) {
	if c.listener != nil {
		return c.listener(ctx, c.Listen)
	}
	var l net.ListenConfig
	return l.Listen(ctx, "tcp", c.Listen)
}

// rejected counts streams and connections of a listener that were not served, over
// all runs.
type rejected struct {
	mu     sync.Mutex
	before map[string]uint64 // by earlier runs
	now    *streams.Server   // of this run; nil before the first
}

// begin counts a new run.
func (r *rejected) begin(server *streams.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.now = r.counts(), server
}

// counts returns the sums by cause. The caller holds the lock.
func (r *rejected) counts() map[string]uint64 {
	all := maps.Clone(r.before)
	if r.now == nil {
		return all
	}
	if all == nil {
		all = map[string]uint64{}
	}
	for cause, n := range r.now.Rejected() {
		all[cause] += n
	}
	return all
}

// StreamsRejected implements [source.Listener].
func (s *Source) StreamsRejected() map[string]uint64 {
	s.rejected.mu.Lock()
	defer s.rejected.mu.Unlock()
	return s.rejected.counts()
}

// turned records the connected peer of a listener, and the rejected peers.
type turned struct {
	mu    sync.Mutex
	peer  string
	count int
	last  string
	at    time.Time
}

// begin resets the connected peer.
func (t *turned) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer = ""
}

// enter makes a caller the connected peer, unless there is another.
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

func (t *turned) notices() []model.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		return nil
	}
	return []model.Notice{{
		Object: "source at " + t.last,
		Text: fmt.Sprintf("it dialled at %s, while %s was connected, and was turned away, as others %d times before: one peer alone is taken; give it a source of its own",
			t.at.UTC().Format(time.RFC3339), t.peer, t.count-1),
	}}
}
