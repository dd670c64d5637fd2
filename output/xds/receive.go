package xds

import (
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/rate"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/push"
)

// receiveAll takes in requests until the client or the stream ends. The one
// that is too early waits, and those behind it with it: they stay in the
// transport, whose window is bounded, until the client waits, too.
func (s *stream) receiveAll(m request) (err error) {
	defer s.server.survive(&err)
	for {
		delay, why := s.pace.delay(time.Now(), m)
		s.slow(delay, why)
		wait.Sleep(s.wire.Context(), delay)
		if err := s.take(m); err != nil {
			return err
		}
		if m, err = s.server.receive(s.inlet, s.mode, s.listed); err != nil {
			return err
		}
	}
}

// slow notes that a request has to wait.
func (s *stream) slow(wait time.Duration, why cause) {
	if wait <= 0 {
		return
	}
	s.server.rejected.counts[why].Add(1)
	if _, loud := s.pace.slowed.Take(time.Now(), 1, 0); loud {
		s.log.Warn("a client is kept waiting, for it says too much", "cause", causeNames[why], "wait", wait.Round(time.Millisecond))
	}
}

// take takes in one request.
func (s *stream) take(m request) error {
	t, known, err := s.typeOf(m)
	if err != nil {
		return err
	}
	if !known {
		if s.pace.unknown(m.GetTypeUrl()) {
			s.log.Debug("client asks for a type that is not served", "type", cut(m.GetTypeUrl(), shownBytes))
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

// measure ends a stream that asks, over several requests, for more names of a
// type than it may. The bytes of its names are added up as it says them; only
// when that is too much, those that count are.
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
		return s.server.rejected.record(tooMuch, tooLarge("the stream asks for more than %d names of %s, or for names of more than %d bytes, which is all it may have; ask for less on a stream, or for everything by *",
			limits.Names, s.server.engine.TypeName(t), limits.NamesBytes))
	}
	return nil
}

// request hands a request to the engine.
func (s *stream) request(t push.Type, r push.Request) error {
	if s.named != nil && r.Wildcard == push.WildcardOn {
		return s.server.rejected.record(notHere, s.named)
	}
	err := s.hand(t, r)
	if err == nil {
		return nil
	}
	return s.server.rejected.record(tooMuch, tooLarge("%s: %v; ask for less, or for everything by *", s.server.engine.TypeName(t), err))
}

// hand has the engine look at a request, and logs a NACK that it takes for one. A
// NACK with a nonce that is not that of an open response says nothing, and whoever
// sends such may send them without end.
func (s *stream) hand(t push.Type, r push.Request) error {
	if r.Answer.Kind != push.NACK {
		return s.subscriber.Request(r)
	}
	before := s.subscriber.NACKs(t)
	err := s.subscriber.Request(r)
	if s.subscriber.NACKs(t) > before && s.pace.loud(time.Now()) {
		s.log.Warn("client NACKed a response", "type", s.server.engine.TypeName(t), "err", r.Answer.Reason)
	}
	return err
}

// typeOf tells what type a request is about; it is not known if it is not served.
func (s *stream) typeOf(m request) (t push.Type, known bool, err error) {
	url := m.GetTypeUrl()
	if s.only != every {
		if url != "" && url != s.server.engine.TypeName(s.only) {
			return 0, false, grpcstatus.Errorf(codes.InvalidArgument, "this method serves %s only; ask for %q on another, or on an aggregated stream",
				s.server.engine.TypeName(s.only), cut(url, shownBytes))
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

// pace is how fast a stream's requests are taken in, and how much is made of
// them. The receiving goroutine owns it.
type pace struct {
	requests, nacks rate.Bucket
	log, slowed     rate.Bucket         // of what is logged of NACKs, and of waiting
	types           map[string]struct{} // asked for and not served
}

func newPace(l Limits) pace {
	return pace{
		requests: rate.New(l.Requests), nacks: rate.New(l.NACKs),
		log:    rate.New(Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: nacksLogged}),
		slowed: rate.New(Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: 1}),
	}
}

// delay is how long a request has to wait, and by which limit.
func (p *pace) delay(now time.Time, m request) (wait time.Duration, why cause) {
	const forEver = 1<<63 - 1
	wait, _ = p.requests.Take(now, 1, forEver)
	if m.GetErrorDetail() == nil {
		return wait, slowRequests
	}
	if nack, _ := p.nacks.Take(now, 1, forEver); nack > wait {
		return nack, slowNACKs
	}
	return wait, slowRequests
}

// loud reports whether one more NACK is worth logging.
func (p *pace) loud(now time.Time) bool {
	_, ok := p.log.Take(now, 1, 0)
	return ok
}

// unknown reports whether a type is worth noting: it is new, and there were not many.
func (p *pace) unknown(typeURL string) bool {
	typeURL = cut(typeURL, shownBytes)
	if _, noted := p.types[typeURL]; noted || len(p.types) >= unknownTypes {
		return false
	}
	if p.types == nil {
		p.types = map[string]struct{}{}
	}
	p.types[typeURL] = struct{}{}
	return true
}
