package xds

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/intake"
	"github.com/isthmus-mesh/isthmus/push"
)

// stream is one client's stream. The receiving goroutine owns types.
type stream struct {
	server     *Server
	mode       push.Mode
	wire       grpc.ServerStream
	inlet      *intake.Inlet
	log        *slog.Logger
	subscriber *push.Subscriber
	only       push.Type // or every
	named      error     // as in [service]
	pace       pace

	types    map[push.Type]*asked // on this stream
	denied   error                // why it may not read configuration; nil if it may
	versions map[string]push.Type // types of configuration as the client calls them

	mu      sync.Mutex
	serials map[push.Type]uint64 // of the newest response by type, as the sender sent it
	urls    map[push.Type]string // how the client calls a type of configuration
}

// request is what both variants' messages have.
type request interface {
	GetNode() *corev3.Node
	GetTypeUrl() string
	GetErrorDetail() *status.Status
	GetResponseNonce() string
}

// answerOf reads a message's word on a response. It is a NACK by having a
// reason, whatever version it carries. Nonces can be guessed, but nobody can
// answer what has not been sent: it would make room for another response while
// the first is still in the outbox, which holds one of each type.
func (s *stream) answerOf(t push.Type, m request) push.Answer {
	serial, err := strconv.ParseUint(m.GetResponseNonce(), 10, 64)
	switch {
	case err != nil || serial > s.latest(t):
		return push.Answer{}
	case m.GetErrorDetail() != nil:
		return push.Answer{Kind: push.NACK, Serial: serial, Reason: cut(m.GetErrorDetail().GetMessage(), reasonBytes)}
	default:
		return push.Answer{Kind: push.ACK, Serial: serial}
	}
}

// serve runs a stream to its end.
func (s *Server) serve(wire grpc.ServerStream, mode push.Mode, only push.Type, named error) error {
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
	from, err := intake.New(wire, who.key(), &s.intake)
	if err != nil {
		return err
	}
	first, err := s.awaitFirst(from, mode)
	if err != nil {
		return endOf(err)
	}
	st, err := s.open(wire, mode, who, first)
	if err != nil {
		return err
	}
	defer st.subscriber.Close()
	st.inlet, st.only, st.named = from, only, named
	release := who.by.afterLife(st.subscriber.Close)
	defer release()
	ended := make(chan error, 1) // the first reason counts
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
		st.subscriber.Close() // lets the sender end
	}
	from.OnExpiry(end)
	go func() { end(st.receiveAll(first)) }()
	err = st.sendAll()
	if why := who.by.dismissed(); why != nil {
		return s.rejected.record(untrusted, why)
	}
	if st.subscriber.Failed() {
		return s.rejected.record(panicked, errFault)
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

var errFault = grpcstatus.Error(codes.Internal, "a fault of this Isthmus ended the stream; its log tells more")

var errStopping = grpcstatus.Error(codes.Unavailable, "this Isthmus is stopping; connect to another")

// endOf is the status of a stream whose client ended it.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// awaitFirst waits for the first request of a stream, but not for ever: who has
// nothing to say takes the place of others.
func (s *Server) awaitFirst(from *intake.Inlet, mode push.Mode) (request, error) {
	type arrival struct {
		request
		err error
	}
	arrived := make(chan arrival, 1) // the first counts
	arrive := func(a arrival) {
		select {
		case arrived <- a:
		default:
		}
	}
	from.OnExpiry(func(err error) { arrive(arrival{err: err}) })
	go func() { // until the stream ends, which is when this function's caller returns
		var a arrival
		defer func() { arrive(a) }()
		defer s.survive(&a.err)
		a.request, a.err = s.receive(from, mode, nil)
	}()
	patience := time.NewTimer(s.limits.FirstRequest)
	defer patience.Stop()
	select {
	case a := <-arrived:
		return a.request, a.err
	case <-patience.C:
		return nil, s.rejected.record(tooSilent, grpcstatus.Errorf(codes.DeadlineExceeded,
			"no request came within %s of the stream's beginning; send the first request at once", s.limits.FirstRequest))
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
		if s.engine.Serves() {
			return nil
		}
		return grpcstatus.Error(codes.Unavailable, "not primed yet: a required source has not been listed; GET /readyz?verbose on the admin address names it")
	}
}

// open enters a client, once there is something to serve.
func (s *Server) open(wire grpc.ServerStream, mode push.Mode, who identity, first request) (*stream, error) {
	node := first.GetNode()
	client := s.config.Kinds.clientOf(node, first.GetTypeUrl())
	if err := s.checkNode(first, client.Namespace); err != nil {
		return nil, err
	}
	var err error
	if client.Namespace, err = who.narrow(client.Namespace); err != nil {
		return nil, s.rejected.record(notWho, err)
	}
	if err := s.awaitPrimed(wire.Context()); err != nil {
		return nil, err
	}
	info := push.Info{ID: node.GetId(), Protocol: protocols[mode], Identity: cut(describe(client), shownBytes), Since: time.Now(), Budget: who.key()}
	who.prove(&info)
	log := s.log.With("client", info.ID)
	subscriber := s.engine.Connect(info, client)
	if subscriber == nil {
		return nil, errStopping
	}
	return &stream{
		server: s, mode: mode, wire: wire, subscriber: subscriber, log: log, pace: newPace(s.limits),
		types: map[push.Type]*asked{}, serials: map[push.Type]uint64{},
		denied: s.denied(who), versions: map[string]push.Type{}, urls: map[push.Type]string{},
	}, nil
}

var protocols = [...]string{push.WholeState: "xds-sotw", push.Delta: "xds-delta"}

// sendAll sends what the engine has for the client until the subscriber is closed.
func (s *stream) sendAll() error {
	for r := range s.subscriber.Out() {
		// Known before the client can answer.
		s.note(r)
		m := encode(r, s.url(r.Type), nonceOf(r.Serial), s.server.controlPlane)
		if err := s.wire.SendMsg(m); err != nil {
			return err
		}
		s.subscriber.Sent(r)
	}
	return nil
}

// latest is the serial of the newest response of a type; zero if there was none.
func (s *stream) latest(t push.Type) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serials[t]
}

func (s *stream) note(r *push.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serials[r.Type] = r.Serial
}

// of is what the stream remembers of a type.
func (s *stream) of(t push.Type) *asked {
	if s.types[t] == nil {
		s.types[t] = &asked{}
	}
	return s.types[t]
}

func nonceOf(serial uint64) string { return strconv.FormatUint(serial, 10) }
