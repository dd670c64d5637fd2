package xds

import (
	"strconv"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// stream is one client's stream. The receiving goroutine owns asked.
type stream struct {
	*streams.Server
	transport    *streams.Stream
	subscriber   *push.Subscriber
	engine       *push.Engine
	decoder      wire.Decoder
	limits       *Limits
	controlPlane []byte

	named error // as in [service]
	marks bool  // the client requests marks on first states
	pace  streams.Pace

	types *types
	asked map[world.Type]*asked // the requested types
	sent  serials
}

// sendAll sends the client's responses until the subscriber is closed.
func (s *stream) sendAll() error {
	for r := range s.subscriber.Out() {
		// Known before the client can answer.
		s.sent.add(r)
		m := wire.Encode(r, s.types.url(r.Type), nonceOf(r.Serial), s.controlPlane)
		if err := s.transport.SendMsg(m); err != nil {
			return err
		}
		s.subscriber.Sent(r)
	}
	return nil
}

// receiveAll applies requests until the client or the stream ends.
func (s *stream) receiveAll(m *wire.Request) (err error) {
	for {
		s.pace.Await(s.transport.Context(), m.NACK)
		if err := s.take(m); err != nil {
			return err
		}
		if m, err = s.receive(); err != nil {
			return err
		}
	}
}

// receive waits for the next request.
func (s *stream) receive() (*wire.Request, error) {
	return streams.Receive(s.transport, func(text []byte) (*wire.Request, error) { return s.decoder.Decode(text, s.listed) })
}

// listed returns the digest of the names that the engine has of a type.
func (s *stream) listed(typeURL string) uint64 {
	if t, known := s.types.known(typeURL); known {
		return s.subscriber.Listed(t)
	}
	return 0
}

// take applies one request.
func (s *stream) take(m *wire.Request) error {
	t, known, err := s.types.find(m.TypeURL, s.asked)
	if err != nil || !known {
		return err
	}
	of := s.asked[t]
	if of == nil {
		of = &asked{}
		s.asked[t] = of
	}
	to := target{Type: t, url: s.types.url(t), whole: s.engine.Whole(t), latest: s.sent.latest(t)}
	if s.decoder.Mode == world.WholeState {
		return s.request(of.wholeState(to, m))
	}
	if err := s.request(of.delta(to, m, s.marks)); err != nil {
		return err
	}
	return s.measure(t, of, m.Subscribe)
}

// request hands a request to the engine.
func (s *stream) request(r session.Request) error {
	if s.named != nil && r.Wildcard == session.WildcardOn {
		return s.Reject(streams.NotHere, s.named)
	}
	if err := s.hand(r); err != nil {
		return s.Reject(streams.TooMuch, streams.TooLarge("%s: %v; ask for less, or for everything by *", s.engine.TypeName(r.Type), err))
	}
	return nil
}

// hand passes a request to the engine, and logs a NACK that the engine accepts as one. A
// NACK with the nonce of no open response has no effect, and a client may send such NACKs
// without end.
func (s *stream) hand(r session.Request) error {
	if r.Answer.Kind != session.NACK {
		return s.subscriber.Request(r)
	}
	before := s.subscriber.NACKs(r.Type)
	err := s.subscriber.Request(r)
	if s.subscriber.NACKs(r.Type) > before {
		s.pace.LogNACK(s.engine.TypeName(r.Type), r.Answer.Reason)
	}
	return err
}

// measure ends a stream that asks, over several requests, for more names of a type than it
// may. It adds up the bytes of all requested names. Only when that sum is too large, it
// adds up the subscribed ones.
func (s *stream) measure(t world.Type, of *asked, subscribed []string) error {
	if len(subscribed) == 0 {
		return nil
	}
	for _, name := range subscribed {
		of.bytes += len(name)
	}
	if of.bytes > s.limits.NamesBytes {
		of.bytes = s.subscriber.SubscribedBytes(t)
	}
	if of.bytes > s.limits.NamesBytes || s.subscriber.Subscribed(t) > s.limits.Names {
		return s.Reject(streams.TooMuch, streams.TooLarge("the stream asks for more than %d names of %s, or for names of more than %d bytes, which is all it may have; ask for less on a stream, or for everything by *",
			s.limits.Names, s.engine.TypeName(t), s.limits.NamesBytes))
	}
	return nil
}

func nonceOf(serial uint64) string { return strconv.FormatUint(serial, 10) }
