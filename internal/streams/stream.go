package streams

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/push"
)

// Wire is what the streams of both directions have.
type Wire interface {
	Context() context.Context
	SendMsg(m any) error
	RecvMsg(m any) error
}

// Stream is a stream that was let in, or one that we have opened.
type Stream struct {
	Wire
	Who Identity

	server *Server
	inlet  *intake.Inlet // nil if we have opened it
}

// Handler returns what gRPC has serve a stream: it lets the stream in, has serve serve
// it, and says how it ended.
func (s *Server) Handler(serve func(*Stream) error) grpc.StreamHandler {
	return func(_ any, wire grpc.ServerStream) (err error) {
		defer s.Survive(&err)
		who, err := s.identify(wire.Context())
		if err != nil {
			return err
		}
		if err := s.welcome(who.by); err != nil {
			return err
		}
		leave, err := s.admit(wire.Context(), who)
		if err != nil {
			return err
		}
		defer leave()
		inlet, err := intake.New(wire, who.Key(), &s.intake)
		if err != nil {
			return err
		}
		if err := serve(&Stream{Wire: wire, Who: who, server: s, inlet: inlet}); !errors.Is(err, io.EOF) {
			return err
		}
		return nil // its client ended it
	}
}

// Opened is a stream that we have opened, to one who need not prove who it is: it has
// been chosen. Who says how it is counted and shown.
func (s *Server) Opened(wire Wire, who Identity) *Stream {
	return &Stream{Wire: wire, Who: who, server: s}
}

// Connect enters a client in the engine, once there is something to serve.
func (st *Stream) Connect(info push.Info, client push.Client) (*push.Subscriber, error) {
	if err := st.server.awaitPrimed(st.Context()); err != nil {
		return nil, err
	}
	info.Since, info.Budget = time.Now(), st.Who.Key()
	if st.Who.Name != "" { // what is proven takes the place of what is claimed
		info.Identity, info.Proven = st.Who.Name, true
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

// Run serves a stream to its end: receive and send return when it has come, send also
// when the subscriber is closed.
func (st *Stream) Run(subscriber *push.Subscriber, receive, send func() error) error {
	defer subscriber.Close()
	by := st.Who.by
	release := by.afterLife(subscriber.Close)
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
	if why := by.dismissed(); why != nil {
		return st.server.Reject(untrusted, why)
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

// surviving makes an error of a panic.
func (s *Server) surviving(f func() error) (err error) {
	defer s.Survive(&err)
	return f()
}

// Receive waits for the next request of a stream, and decodes it while few others are.
// The text that decode is given is its own until it returns.
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

// Text waits for the next request of a stream that was let in, and returns its bytes, which
// belong to the caller. A caller has named [Stream.OnStall] before.
func (st *Stream) Text() ([]byte, error) {
	text, release, err := st.inlet.Next()
	if err != nil {
		return nil, err
	}
	defer release()
	defer text.Free()
	return text.Materialize(), nil
}

// OnStall says what happens when a request was begun and does not come in time.
func (st *Stream) OnStall(end func(error)) { st.inlet.OnExpiry(end) }

// decodeIn decodes a message and frees it.
func decodeIn[M any](s *Server, text mem.BufferSlice, decode func(text []byte) (M, error)) (M, error) {
	defer text.Free()
	size := min(int64(text.Len()), decoded)
	_ = s.decoding.Acquire(context.Background(), size) // no decoding waits for anything, so this ends
	defer s.decoding.Release(size)
	buffer := text.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	m, err := decode(buffer.ReadOnlyData())
	if err != nil {
		return m, s.Reject(TooMuch, err)
	}
	return m, nil
}

// First waits for the first request of a stream, but not for ever: who has
// nothing to say takes the place of others.
func First[M any](st *Stream, decode func(text []byte) (M, error)) (M, error) {
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
	patience := time.NewTimer(st.server.limits.FirstRequest)
	defer patience.Stop()
	select {
	case a := <-arrived:
		return a.m, a.err
	case <-patience.C:
		var none M
		return none, st.server.Reject(tooSilent, grpcstatus.Errorf(codes.DeadlineExceeded,
			"no request came within %s of the stream's beginning; send the first request at once", st.server.limits.FirstRequest))
	}
}

// awaitPrimed waits a little for the first complete listing, less than clients
// wait before they take silence for absence, and then rejects the stream. If
// something is there to serve by then, the types of that are served, and a producer
// that has nothing to say yet keeps nobody from them.
func (s *Server) awaitPrimed(ctx context.Context) error {
	select {
	case <-s.engine.Primed():
		return nil
	default:
	}
	patience := time.NewTimer(s.options.PrimedWithin)
	defer patience.Stop()
	select {
	case <-s.engine.Primed():
		return nil
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-s.stopping:
		return errStopping
	case <-patience.C:
		if s.engine.Serves() {
			return nil
		}
		return grpcstatus.Error(codes.Unavailable, "not primed yet: a required source has not been listed; GET /readyz?verbose on the admin address names it")
	}
}
