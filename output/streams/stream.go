package streams

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Wire is the common part of the streams of both directions.
type Wire interface {
	Context() context.Context
	SendMsg(m any) error
	RecvMsg(m any) error
}

// Stream is an admitted stream, or one that this process has opened.
type Stream struct {
	Wire
	Who Identity

	over   context.Context // ends, with the reason, when the client's proof holds no more
	server *Server
	first  time.Duration // how long the first request may take
	inlet  *intake.Inlet // nil if this process opened the stream
}

// admitting returns the handler of a method that admits a stream, serves it, and returns how it
// ended.
func (s *Server) admitting(method string, serve grpc.StreamHandler) grpc.StreamHandler {
	return func(_ any, wire grpc.ServerStream) (err error) {
		defer s.Survive(&err)
		who, err := s.identify(wire.Context())
		check := method == healthv1.Health_Check_FullMethodName
		unproven := err != nil && check && showsNothing(wire.Context())
		if err != nil && !unproven {
			return s.Reject(NotWho, err)
		}
		seat, first := s.limits.seat(who), s.limits.FirstRequest
		if unproven {
			seat, first = s.limits.checkSeat(who), s.limits.Check
		}
		seat.hurried = check
		if err := who.by.welcome(unproven); err != nil {
			return err
		}
		leave, err := s.guard.admission.admit(wire.Context(), who, seat, s.options.PrimedWithin)
		if err != nil {
			return s.Reject(tooMany, err)
		}
		defer leave()
		inlet, err := intake.New(wire, who.Key(), &s.intake)
		if err != nil {
			return err
		}
		over, release := s.tenure(who)
		defer release()
		stream := &Stream{Wire: wire, Who: who, over: over, server: s, first: first, inlet: inlet}
		if err := serve(nil, admitted{wire, stream}); !errors.Is(err, io.EOF) {
			return err
		}
		return nil // its client ended it
	}
}

// Over is closed when the proof of the stream's client holds no more.
func (st *Stream) Over() <-chan struct{} { return st.over.Done() }

// WhileProven has release called when the client's proof holds no more, also if its stream has not
// ended yet. It returns release, which may be called twice.
func (st *Stream) WhileProven(release func()) func() {
	context.AfterFunc(st.over, release)
	return release
}

// Untrusted rejects a stream that is [Stream.Over], with the reason.
func (st *Stream) Untrusted() error { return st.server.Reject(untrusted, context.Cause(st.over)) }

// NewPace returns the pace of a stream, which logs delays.
func (s *Server) NewPace(log *slog.Logger) Pace { return newPace(s.limits, s.rejections, log) }

// Opened returns a stream that this process has opened, to a configured peer, which need
// not prove its identity. who is the identity by which it is counted and shown.
func (s *Server) Opened(wire Wire, who Identity) *Stream {
	return &Stream{Wire: wire, Who: who, over: context.Background(), server: s}
}

// Connect enters a client in the engine, once the engine is primed.
func (st *Stream) Connect(info push.Info, client world.Client) (*push.Subscriber, error) {
	if err := st.server.awaitPrimed(st.Context()); err != nil {
		return nil, err
	}
	info.Since, info.Budget = time.Now(), st.Who.Key()
	if st.Who.Proven() { // the proven identity replaces the claimed one
		info.Identity, info.Proven = st.Who.ID(), true
	}
	subscriber := st.server.engine.Connect(info, client)
	if subscriber == nil {
		return nil, errStopping
	}
	if err := subscriber.Admit(); err != nil {
		subscriber.Close()
		return nil, st.server.Reject(TooMuch, grpcstatus.Error(codes.ResourceExhausted, err.Error()))
	}
	return subscriber, nil
}

// Run serves a stream to its end. receive and send return at the end of the stream, send
// also when the subscriber is closed.
func (st *Stream) Run(subscriber *push.Subscriber, receive, send func() error) error {
	defer subscriber.Close()
	release := context.AfterFunc(st.over, subscriber.Close)
	defer release()
	ended := make(chan error, 1) // the first reason counts
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
		subscriber.Close() // lets the sender end
	}
	if st.inlet != nil {
		st.inlet.OnExpiry(end)
	}
	go func() { end(st.server.surviving(receive)) }() // until the stream ends, which is when the caller returns
	err := send()
	if st.over.Err() != nil {
		return st.Untrusted()
	}
	if subscriber.Failed() {
		return st.server.Reject(panicked, errFault)
	}
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default:
		return errStopping // the engine closed the subscriber
	}
}

// surviving returns a panic as an error.
func (s *Server) surviving(f func() error) (err error) {
	defer s.Survive(&err)
	return f()
}

// Receive waits for the next request of a stream, and decodes it under the limit of
// concurrent decoding. decode must not keep its text.
func Receive[M any](st *Stream, decode func(text []byte) (M, error)) (m M, err error) {
	if st.inlet == nil {
		var r Raw
		if err := st.RecvMsg(&r); err != nil {
			return m, err
		}
		return decodeIn(st.server, mem.BufferSlice{mem.SliceBuffer(r.Text)}, decode)
	}
	text, release, err := st.inlet.Next()
	if err != nil {
		return m, err
	}
	defer release()
	return decodeIn(st.server, text, decode)
}

// Text waits for the next request of an admitted stream, and returns its bytes. The caller
// owns them. The caller has called [Stream.OnStall] before.
func (st *Stream) Text() ([]byte, error) {
	text, release, err := st.inlet.Next()
	if err != nil {
		return nil, err
	}
	defer release()
	defer text.Free()
	return text.Materialize(), nil
}

// OnStall sets the function that is called when a request does not complete in time.
func (st *Stream) OnStall(end func(error)) { st.inlet.OnExpiry(end) }

// decodeIn decodes a message and frees it.
func decodeIn[M any](s *Server, text mem.BufferSlice, decode func(text []byte) (M, error)) (M, error) {
	defer text.Free()
	size := min(int64(text.Len()), decoded)
	_ = s.decoding.Acquire(context.Background(), size) // decoding waits for nothing, so this ends
	defer s.decoding.Release(size)
	buffer := text.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	m, err := decode(buffer.ReadOnlyData())
	if err != nil {
		return m, s.Reject(TooMuch, err)
	}
	return m, nil
}

// First waits for the first request of a stream, for a limited time: a silent stream takes
// the place of others.
func First[M any](st *Stream, decode func(text []byte) (M, error)) (M, error) {
	timer := time.NewTimer(st.first)
	defer timer.Stop()
	return next(st, timer.C, decode)
}

// next waits for the next request of a stream, until it is late.
func next[M any](st *Stream, late <-chan time.Time, decode func(text []byte) (M, error)) (M, error) {
	type arrival struct {
		m   M
		err error
	}
	arrived := make(chan arrival, 1) // the first counts
	arrive := func(a arrival) {
		select {
		case arrived <- a:
		default:
		}
	}
	st.inlet.OnExpiry(func(err error) { arrive(arrival{err: err}) })
	go func() { // until the stream ends, which is when this function's caller returns
		var a arrival
		defer func() { arrive(a) }()
		defer st.server.Survive(&a.err)
		a.m, a.err = Receive(st, decode)
	}()
	select {
	case a := <-arrived:
		return a.m, a.err
	case <-late:
		var none M
		return none, st.server.Reject(tooSilent, grpcstatus.Errorf(codes.DeadlineExceeded,
			"no request came within %s of the stream's beginning; send the first request at once", st.first))
	}
}

// awaitPrimed waits a little for the first complete listing, and then rejects the stream.
// The wait is shorter than the time after which clients take silence for absence. If any
// producer serves by then, its types are served, even if other producers have nothing yet.
func (s *Server) awaitPrimed(ctx context.Context) error {
	select {
	case <-s.engine.Primed():
		return nil
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	timer := time.NewTimer(s.options.PrimedWithin)
	defer timer.Stop()
	select {
	case <-s.engine.Primed():
		return nil
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-s.stopping:
		return errStopping
	case <-timer.C:
		if s.engine.Serves() {
			return nil
		}
		return s.Reject(unready, grpcstatus.Error(codes.Unavailable, "not primed yet: a required source has not been listed; 'isthmus status' names it"))
	}
}
