package xds

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/push"
)

// receiveAll applies requests until the client or the stream ends.
func (s *stream) receiveAll(m request) (err error) {
	for {
		s.pace.Await(s.wire.Context(), m.GetErrorDetail() != nil)
		if err := s.take(m); err != nil {
			return err
		}
		if m, err = s.receive(); err != nil {
			return err
		}
	}
}

// take applies one request.
func (s *stream) take(m request) error {
	t, known, err := s.typeOf(m)
	if err != nil {
		return err
	}
	if !known {
		if s.notes(m.GetTypeUrl()) {
			s.log.Debug("client asks for a type that is not served", "type", streams.Cut(m.GetTypeUrl(), streams.ShownBytes))
		}
		return nil
	}
	switch m := m.(type) {
	case *sotwMessage:
		return s.request(t, s.sotwRequest(t, m))
	case *discoveryv3.DeltaDiscoveryRequest:
		if err := s.request(t, s.deltaRequest(t, m)); err != nil {
			return err
		}
		return s.measure(t, m.GetResourceNamesSubscribe())
	}
	return nil
}

// measure ends a stream that asks, over several requests, for more names of a type than it
// may. It adds up the bytes of all requested names. Only when that sum is too large, it
// adds up the subscribed ones.
func (s *stream) measure(t push.Type, subscribed []string) error {
	if len(subscribed) == 0 {
		return nil
	}
	of := s.of(t)
	for _, name := range subscribed {
		of.said += len(name)
	}
	limits := &s.server.limits
	if of.said > limits.NamesBytes {
		of.said = s.subscriber.SubscribedBytes(t)
	}
	if of.said > limits.NamesBytes || s.subscriber.Subscribed(t) > limits.Names {
		return s.server.Reject(streams.TooMuch, streams.TooLarge("the stream asks for more than %d names of %s, or for names of more than %d bytes, which is all it may have; ask for less on a stream, or for everything by *",
			limits.Names, s.server.engine.TypeName(t), limits.NamesBytes))
	}
	return nil
}

// request hands a request to the engine.
func (s *stream) request(t push.Type, r push.Request) error {
	if s.named != nil && r.Wildcard == push.WildcardOn {
		return s.server.Reject(streams.NotHere, s.named)
	}
	err := s.hand(t, r)
	if err == nil {
		return nil
	}
	return s.server.Reject(streams.TooMuch, streams.TooLarge("%s: %v; ask for less, or for everything by *", s.server.engine.TypeName(t), err))
}

// hand passes a request to the engine, and logs a NACK that the engine accepts as one. A
// NACK with the nonce of no open response has no effect, and a client may send such NACKs
// without end.
func (s *stream) hand(t push.Type, r push.Request) error {
	if r.Answer.Kind != push.NACK {
		return s.subscriber.Request(r)
	}
	before := s.subscriber.NACKs(t)
	err := s.subscriber.Request(r)
	if s.subscriber.NACKs(t) > before {
		s.pace.LogNACK(s.server.engine.TypeName(t), r.Answer.Reason)
	}
	return err
}

// typeOf returns the type of a request; known is false if it is not served.
func (s *stream) typeOf(m request) (t push.Type, known bool, err error) {
	url := m.GetTypeUrl()
	if s.only != every {
		if url != "" && url != s.server.engine.TypeName(s.only) {
			return 0, false, grpcstatus.Errorf(codes.InvalidArgument, "this method serves %s only; ask for %q on another, or on an aggregated stream",
				s.server.engine.TypeName(s.only), streams.Cut(url, streams.ShownBytes))
		}
		return s.only, true, nil
	}
	if url == "" {
		return 0, false, grpcstatus.Error(codes.InvalidArgument, "a request on an aggregated stream must carry type_url")
	}
	if isConfiguration(url) {
		return s.configuration(url)
	}
	t, known = s.server.engine.Type(url)
	return t, known, nil
}

// notes reports whether a type is worth a log line: it is new, and there were not many.
func (s *stream) notes(typeURL string) bool {
	typeURL = streams.Cut(typeURL, streams.ShownBytes)
	if _, noted := s.noted[typeURL]; noted || len(s.noted) >= unknownTypes {
		return false
	}
	if s.noted == nil {
		s.noted = map[string]struct{}{}
	}
	s.noted[typeURL] = struct{}{}
	return true
}
