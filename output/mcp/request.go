package mcp

import (
	"cmp"
	"strconv"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// receiveAll applies requests until the sink or the stream ends.
func (st *stream) receiveAll(m *mcp.RequestResources) (err error) {
	for {
		if err := st.take(m); err != nil {
			return err
		}
		if m, err = streams.Receive(st.wire, st.server.limits.decode); err != nil {
			return err
		}
	}
}

// take applies one request.
func (st *stream) take(m *mcp.RequestResources) error {
	if m.GetCollection() == mcp.TriggerCollection {
		return nil // a sink's answer to the trigger that began its stream
	}
	t, known := st.server.engine.Type(m.GetCollection())
	if !known {
		return st.answerUnknown(m)
	}
	before, begun := st.begun[t]
	r, counts := st.requestOf(t, m)
	st.pace.Await(st.wire.Context(), r.Answer.Kind == session.NACK || begun && before != m.GetIncremental())
	if !counts {
		return nil
	}
	return st.hand(t, r)
}

// answerUnknown answers once that an unserved collection is empty. A sink is ready only
// when all of its requested collections were answered, and Pilots of different releases ask
// for different collections. The reference implementation ends the stream, which would take
// the other collections from the sink.
func (st *stream) answerUnknown(m *mcp.RequestResources) error {
	collection := m.GetCollection()
	if collection == "" || len(collection) > streams.ShownBytes {
		return st.server.Reject(streams.TooMuch, grpcstatus.Errorf(codes.InvalidArgument,
			"a request without a collection, or with one of more than %d bytes; name one such as istio/networking/v1alpha3/serviceentries", streams.ShownBytes))
	}
	st.pace.Await(st.wire.Context(), false)
	if _, asked := st.unknown[collection]; asked || m.GetResponseNonce() != "" {
		return nil
	}
	if most := st.server.limits.Unknown; len(st.unknown) >= most {
		return st.server.Reject(streams.TooMuch, streams.TooLarge("the stream asks for more than %d collections that nobody serves", most))
	}
	st.unknown[collection] = struct{}{}
	st.empties <- collection // there is room for all of them
	st.log.Debug("a sink asks for a collection that nobody serves; it is answered that it is empty", "type", collection)
	return nil
}

// requestOf turns a message into the engine's terms. The message does not count if it
// answers an unawaited response, or repeats a request.
func (st *stream) requestOf(t world.Type, m *mcp.RequestResources) (r session.Request, counts bool) {
	r = session.Request{Type: t, Mode: modeOf(m), EachTime: true, Either: m.GetIncremental()}
	before, begun := st.begun[t]
	switch {
	case m.GetResponseNonce() != "":
		if r.Answer, counts = st.answerOf(t, m); !counts {
			return r, false
		}
	case !begun:
		st.first(&r, m)
	case st.awaits(t) || before == m.GetIncremental():
		return r, false // the message is no answer, whatever its fields; the answer sets the mode
	}
	st.begun[t] = m.GetIncremental()
	return r, true
}

func modeOf(m *mcp.RequestResources) world.Mode {
	if m.GetIncremental() {
		return world.Delta
	}
	return world.WholeState
}

// first fills in the first request for a collection. A sink that takes increments and lists
// its resources gets the difference. Any other gets the full state, which deletes obsolete
// resources. Before every source has been listed, the sink may hold resources of unlisted
// ones, so the full state waits.
func (st *stream) first(r *session.Request, m *mcp.RequestResources) {
	r.Wildcard = session.WildcardOn
	held := heldVersions(m.GetInitialResourceVersions())
	if len(held) > 0 && m.GetIncremental() {
		r.Held, r.Confirm = held, true
		return
	}
	r.Mode, r.Claim = world.WholeState, session.Unknown()
	if len(held) > 0 {
		sum := world.VersionOfSet(func(yield func(string, world.Version) bool) {
			for name, v := range held {
				if !yield(name, v) {
					return
				}
			}
		})
		r.Claim = &sum
	}
}

// heldVersions parses the versions that a sink claims to hold. An unknown form of version
// becomes the zero version.
func heldVersions(versions map[string]string) map[string]world.Version {
	held := make(map[string]world.Version, len(versions))
	for name, version := range versions {
		v, _ := world.ParseVersion(version)
		held[name] = v
	}
	return held
}

// answerOf returns a message's answer to the awaited response.
func (st *stream) answerOf(t world.Type, m *mcp.RequestResources) (session.Answer, bool) {
	serial, err := strconv.ParseUint(m.GetResponseNonce(), 10, 64)
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil || serial == 0 || serial != st.open[t] {
		return session.Answer{}, false
	}
	delete(st.open, t)
	if detail := m.GetErrorDetail(); detail != nil {
		reason := cmp.Or(detail.GetMessage(), codes.Code(detail.GetCode()).String()) //nolint:gosec // an unknown code has a text, too
		return session.Answer{Kind: session.NACK, Serial: serial, Reason: streams.Cut(reason, streams.ReasonBytes)}, true
	}
	return session.Answer{Kind: session.ACK, Serial: serial}, true
}

// awaits reports whether a response waits for its answer.
func (st *stream) awaits(t world.Type) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.open[t] != 0
}

// hand passes a request to the engine, and logs a NACK.
func (st *stream) hand(t world.Type, r session.Request) error {
	if r.Answer.Kind == session.NACK {
		st.pace.LogNACK(st.server.engine.TypeName(t), r.Answer.Reason)
	}
	if err := st.subscriber.Request(r); err != nil {
		return st.server.Reject(streams.TooMuch, streams.TooLarge("%s: %v; ask without initial_resource_versions", st.server.engine.TypeName(t), err))
	}
	return nil
}
