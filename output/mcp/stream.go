package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/push"
)

// stream is one sink's stream, in either direction. The receiving goroutine owns
// begun and unknown.
type stream struct {
	server     *Server
	wire       sender
	receive    func() (*mcp.RequestResources, error)
	log        *slog.Logger
	subscriber *push.Subscriber
	pace       pace

	begun   map[push.Type]bool  // whether it takes increments, by the collections that were asked for
	unknown map[string]struct{} // collections asked for that nobody serves
	empties chan string         // those of them that are to be answered

	mu   sync.Mutex
	open map[push.Type]uint64 // the response that waits for its answer
}

// sender is what the streams of both directions have.
type sender interface {
	Context() context.Context
	SendMsg(m any) error
}

// serve runs a stream that a sink has opened.
func (s *Server) serve(wire grpc.ServerStream) error {
	who, err := s.identify(wire.Context())
	if err != nil {
		return err
	}
	leave, err := s.admit(wire.Context(), who)
	if err != nil {
		return err
	}
	defer leave()
	in, err := intake.New(wire, who.key(), &s.intake)
	if err != nil {
		return err
	}
	receive := func() (*mcp.RequestResources, error) { return s.receive(in) }
	first, err := s.awaitFirst(in, receive)
	if err != nil {
		return endOf(err)
	}
	if err := s.awaitPrimed(wire.Context()); err != nil {
		return err
	}
	st := s.enter(wire, receive, push.Info{
		ID: first.GetSinkNode().GetId(), Identity: described(first), Budget: who.key(),
	}, who)
	if st == nil {
		return errStopping
	}
	return st.run(first, who, in.OnExpiry)
}

// enter makes a subscriber of a sink; nil if the engine has stopped.
func (s *Server) enter(wire sender, receive func() (*mcp.RequestResources, error), info push.Info, who identity) *stream {
	info.ID = cmp.Or(cut(info.ID, shownBytes), who.from, "this machine")
	info.Protocol, info.Since = "mcp", time.Now()
	if who.name != "" {
		info.Identity, info.Proven = who.name, true
	}
	subscriber := s.engine.Connect(info, push.Client{Kind: kind, Namespace: s.config.RootNamespace, Account: who.name})
	if subscriber == nil {
		return nil
	}
	return &stream{
		server: s, wire: wire, receive: receive, subscriber: subscriber, log: s.log.With("client", info.ID), pace: newPace(s.limits),
		begun: map[push.Type]bool{}, unknown: map[string]struct{}{}, empties: make(chan string, s.limits.Unknown), open: map[push.Type]uint64{},
	}
}

// described says what a sink says of itself, for people.
func described(m *mcp.RequestResources) string {
	var parts []string
	annotations := m.GetSinkNode().GetAnnotations()
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		parts = append(parts, name+"="+annotations[name])
	}
	return cut(strings.Join(parts, " "), shownBytes)
}

// run serves a stream to its end.
func (st *stream) run(first *mcp.RequestResources, who identity, onExpiry func(func(error))) error {
	defer st.subscriber.Close()
	ended := make(chan error, 1) // the first reason counts
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
		st.subscriber.Close() // lets the sender end
	}
	onExpiry(end)
	defer st.server.watched.enter(who, end)()
	go func() { end(st.receiveAll(first)) }() // until the stream ends, which is when the caller returns
	err := st.sendAll()
	if st.subscriber.Failed() {
		return st.server.rejected.record(panicked, errFault)
	}
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		return endOf(err)
	default:
		return errStopping // the engine closed the subscriber
	}
}

// endOf is the status of a stream whose sink ended it.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// receive waits for the next request of a stream that a sink has opened.
func (s *Server) receive(in *intake.Inlet) (*mcp.RequestResources, error) {
	text, release, err := in.Next()
	if err != nil {
		return nil, err
	}
	defer release()
	defer text.Free()
	return s.decode(text.Materialize())
}

// decode reads a request, while few others are read.
func (s *Server) decode(text []byte) (*mcp.RequestResources, error) {
	size := min(int64(len(text)), decoded)
	_ = s.decoding.Acquire(context.Background(), size) // no decoding waits for anything, so this ends
	defer s.decoding.Release(size)
	m, err := s.limits.decode(text)
	if err != nil {
		return nil, s.rejected.record(tooMuch, err)
	}
	return m, nil
}

// awaitFirst waits for the first request of a stream, but not for ever: who has
// nothing to say takes the place of others.
func (s *Server) awaitFirst(in *intake.Inlet, receive func() (*mcp.RequestResources, error)) (*mcp.RequestResources, error) {
	type arrival struct {
		m   *mcp.RequestResources
		err error
	}
	arrived := make(chan arrival, 1) // the first counts
	arrive := func(a arrival) {
		select {
		case arrived <- a:
		default:
		}
	}
	in.OnExpiry(func(err error) { arrive(arrival{err: err}) })
	go func() { // until the stream ends, which is when the caller returns
		var a arrival
		defer func() { arrive(a) }()
		defer s.survive(&a.err)
		a.m, a.err = receive()
	}()
	patience := time.NewTimer(s.limits.FirstRequest)
	defer patience.Stop()
	select {
	case a := <-arrived:
		return a.m, a.err
	case <-patience.C:
		return nil, s.rejected.record(tooSilent, grpcstatus.Errorf(codes.DeadlineExceeded,
			"no request came within %s of the stream's beginning; send the first request at once", s.limits.FirstRequest))
	}
}

// awaitPrimed waits a little for the first complete listing, and then rejects the
// stream.
func (s *Server) awaitPrimed(ctx context.Context) error {
	patience := time.NewTimer(s.config.PrimedWithin)
	defer patience.Stop()
	select {
	case <-s.engine.Primed():
		return nil
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-s.stopping:
		return errStopping
	case <-patience.C:
		return grpcstatus.Error(codes.Unavailable, "not primed yet: a required source has not been listed; GET /readyz?verbose on the admin address names it")
	}
}

// sendAll sends what there is for the sink until the subscriber is closed.
func (st *stream) sendAll() error {
	for {
		select {
		case r, ok := <-st.subscriber.Out():
			if !ok {
				return nil
			}
			if err := st.send(r); err != nil {
				return err
			}
		case collection := <-st.empties:
			none := &push.Response{Mode: push.WholeState}
			if err := st.wire.SendMsg(encode(none, collection, noNonce)); err != nil {
				return err
			}
		}
	}
}

func (st *stream) send(r *push.Response) error {
	st.mu.Lock()
	st.open[r.Type] = r.Serial // known before the sink can answer
	st.mu.Unlock()
	m := encode(r, st.server.engine.TypeName(r.Type), strconv.FormatUint(r.Serial, 10))
	if err := st.wire.SendMsg(m); err != nil {
		return err
	}
	st.subscriber.Sent(r)
	return nil
}

// noNonce is the nonce of the answer to a collection that nobody serves. No response
// of the engine has it.
const noNonce = "0"
