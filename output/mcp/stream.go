package mcp

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// stream is one sink's stream, in either direction. The receiving goroutine owns
// begun and unknown.
type stream struct {
	server     *Server
	wire       *streams.Stream
	log        *slog.Logger
	subscriber *push.Subscriber
	pace       streams.Pace

	begun   map[world.Type]bool // whether it takes increments, by requested collection
	unknown map[string]struct{} // requested collections that are not served
	empties chan string         // unserved collections still to be answered

	mu   sync.Mutex
	open map[world.Type]uint64 // the awaited response
}

// serve runs a stream that a sink has opened.
func (s *Server) serve(wire *streams.Stream) error {
	if err := s.denied(wire.Who); err != nil {
		return err
	}
	first, err := streams.First(wire, s.limits.decode)
	if err != nil {
		return err
	}
	return s.run(wire, first, described(first))
}

// denied returns why a sink may not read; nil if it may. Where sinks have to prove their
// identity, only sinks of the root namespace may: the resources are the configuration of
// the whole mesh, which no workload may see.
func (s *Server) denied(who streams.Identity) error {
	err := who.Everything()
	if err == nil {
		return nil
	}
	return s.Reject(streams.NotWho, grpcstatus.Errorf(codes.PermissionDenied, "%v, and only control planes there may read the configuration of the mesh", err))
}

// run serves a stream to its end, from its first request on.
func (s *Server) run(wire *streams.Stream, first *mcp.RequestResources, description string) error {
	info := push.Info{
		ID: cmp.Or(streams.Cut(first.GetSinkNode().GetId(), streams.ShownBytes), wire.Who.From, "this machine"), Identity: description, Protocol: "mcp",
	}
	subscriber, err := wire.Connect(info, world.Client{Kind: kind, Namespace: s.config.RootNamespace, Account: wire.Who.ID()})
	if err != nil {
		return err
	}
	log := s.Log.With("client", info.ID)
	st := &stream{
		server: s, wire: wire, subscriber: subscriber, log: log, pace: s.NewPace(log),
		begun: map[world.Type]bool{}, unknown: map[string]struct{}{}, empties: make(chan string, s.limits.Unknown), open: map[world.Type]uint64{},
	}
	return wire.Run(subscriber, func() error { return st.receiveAll(first) }, st.sendAll)
}

// described returns a sink's self-description, for people.
func described(m *mcp.RequestResources) string {
	var parts []string
	annotations := m.GetSinkNode().GetAnnotations()
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		parts = append(parts, name+"="+annotations[name])
	}
	return streams.Cut(strings.Join(parts, " "), streams.ShownBytes)
}

// sendAll sends the sink's responses until the subscriber is closed.
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
			none := &session.Response{Mode: world.WholeState}
			if err := st.wire.SendMsg(encode(none, collection, noNonce)); err != nil {
				return err
			}
		}
	}
}

func (st *stream) send(r *session.Response) error {
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

// noNonce is the nonce of the answer to an unserved collection. No response of the engine
// has it.
const noNonce = "0"
