package xds

import (
	"errors"
	"log/slog"
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/genproto/googleapis/rpc/status"

	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/push"
)

// stream is one client's stream. The receiving goroutine owns types.
type stream struct {
	server     *Server
	mode       push.Mode
	wire       *streams.Stream
	log        *slog.Logger
	subscriber *push.Subscriber
	only       push.Type // or every
	marks      bool      // the client requests marks on first states

	unredirected bool  // the client is a sidecar with INTERCEPTION_MODE NONE
	named        error // as in [service]
	pace         streams.Pace

	types    map[push.Type]*asked // on this stream
	denied   error                // why the client may not read configuration; nil if it may
	versions map[string]push.Type // types of configuration by the client's name
	noted    map[string]struct{}  // requested types that are not served

	mu      sync.Mutex
	serials map[push.Type]uint64 // of the newest response by type, as the sender sent it
	urls    map[push.Type]string // the client's name of a type of configuration

	admitted []push.Type // admitted types, which are not served
	ended    bool        // the admitted types are released
}

// request is the common part of both variants' messages.
type request interface {
	GetNode() *corev3.Node
	GetTypeUrl() string
	GetErrorDetail() *status.Status
	GetResponseNonce() string
}

// answerOf returns a message's answer to a response. It is a NACK if it has a reason,
// whatever version it carries. Nonces can be guessed, so an answer to an unsent response is
// ignored. It would make room for another response while the first is still in the outbox,
// which holds one of each type.
func (s *stream) answerOf(t push.Type, m request) push.Answer {
	serial, err := strconv.ParseUint(m.GetResponseNonce(), 10, 64)
	switch {
	case err != nil || serial > s.latest(t):
		return push.Answer{}
	case m.GetErrorDetail() != nil:
		return push.Answer{Kind: push.NACK, Serial: serial, Reason: streams.Cut(m.GetErrorDetail().GetMessage(), streams.ReasonBytes)}
	default:
		return push.Answer{Kind: push.ACK, Serial: serial}
	}
}

// serve runs a stream to its end.
func (s *Server) serve(wire *streams.Stream, mode push.Mode, only push.Type, named error) error {
	first, err := streams.First(wire, func(text []byte) (request, error) { return s.decode(text, mode, nil) })
	if err != nil {
		return err
	}
	st, err := s.open(wire, mode, only, first)
	if err != nil {
		return err
	}
	defer st.end()
	st.only, st.named = only, named
	if st.unredirected {
		s.unredirected.Add(1)
		defer s.unredirected.Add(-1)
	}
	return wire.Run(st.subscriber, func() error { return st.receiveAll(first) }, st.sendAll)
}

// open enters a client, once the engine is primed.
func (s *Server) open(wire *streams.Stream, mode push.Mode, only push.Type, first request) (*stream, error) {
	node := first.GetNode()
	client := s.config.Kinds.clientOf(node, first.GetTypeUrl())
	client.Increments = mode == push.Delta && only == every
	if err := s.checkNode(first, client.Namespace); err != nil {
		return nil, err
	}
	var err error
	if client.Namespace, err = narrow(wire.Who, client.Namespace); err != nil {
		return nil, s.Reject(streams.NotWho, err)
	}
	var wrongBinds, wrongPorts error
	client.Proxy.Binds, wrongBinds = bindsOf(node, client.Proxy, client.Addresses)
	client.Proxy.Outbound, wrongPorts = outboundOf(node, client.Proxy)
	info := push.Info{ID: node.GetId(), Protocol: protocols[mode], Identity: streams.Cut(describe(client), streams.ShownBytes)}
	if wrong := errors.Join(wrongBinds, wrongPorts); wrong != nil {
		info.Ignored = streams.Cut(wrong.Error(), streams.ShownBytes)
	}
	subscriber, err := wire.Connect(info, client)
	if err != nil {
		return nil, err
	}
	log := s.Log.With("client", info.ID)
	if info.Ignored != "" {
		log.Warn("a part of the node's metadata was left out", "err", info.Ignored)
	}
	if p := client.Proxy; p.Unprivileged && (p.Interception == "NONE" || p.Role == "router") {
		log.Info("services at ports below 1024 have no listeners here, as UNPRIVILEGED_POD says")
	}
	return &stream{
		server: s, mode: mode, marks: marksFirstState(node), unredirected: client.Proxy.Role == "sidecar" && client.Proxy.Interception == "NONE", wire: wire, subscriber: subscriber, log: log, pace: s.NewPace(log),
		types: map[push.Type]*asked{}, serials: map[push.Type]uint64{},
		denied: s.denied(wire.Who), versions: map[string]push.Type{}, urls: map[push.Type]string{},
	}, nil
}

var protocols = [...]string{push.WholeState: "xds-sotw", push.Delta: "xds-delta"}

// sendAll sends the client's responses until the subscriber is closed.
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

// latest returns the serial of the newest response of a type; zero if there was none.
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

// of returns the stream's state of a type.
func (s *stream) of(t push.Type) *asked {
	if s.types[t] == nil {
		s.types[t] = &asked{}
	}
	return s.types[t]
}

func nonceOf(serial uint64) string { return strconv.FormatUint(serial, 10) }
