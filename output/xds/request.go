package xds

import (
	"slices"
	"strconv"
	"sync"

	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// asked is a stream's state of a requested type, beside the engine's.
type asked struct {
	begun bool // a request has come
	named bool // a request has carried a name, so an empty list no longer means everything
	// wildcard is the wildcard of the names last listed (state of the world).
	wildcard session.Wildcard
	bytes    int // of names, as [stream.measure] adds them up
}

// target is the type of a request.
type target struct {
	world.Type
	url    string // the client's name of it
	whole  bool   // a legacy wildcard: an empty list asks for everything
	latest uint64 // the serial of its newest response; zero if there was none
}

// wholeState turns a request into the engine's terms. A request with another nonce than the
// newest response's crossed that response in flight. The first request of a type may carry
// any nonce. A change of subscription that answers nothing may carry none.
func (a *asked) wholeState(of target, m *wire.Request) session.Request {
	r := session.Request{
		Type: of.Type, Mode: world.WholeState, Answer: answerOf(m, of.latest), Replace: true, Digest: m.Digest, Claim: claimOf(m.Version),
		Overtaken: of.latest != 0 && m.Nonce != "" && m.Nonce != nonceOf(of.latest),
	}
	if a.begins() && r.Claim == nil && wire.IsConfiguration(of.url) {
		// A control plane may hold resources, does not declare them when it reconnects, and
		// deletes resources that a first state lacks.
		r.Claim = session.Unknown()
	}
	if !m.Same {
		r.Names, a.wildcard = a.subscription(m.Names, of.whole)
	}
	r.Wildcard = a.wildcard
	return r
}

// subscription interprets names by the protocol: "*" among them asks for everything. So
// does an empty list of a type with a legacy wildcard, as long as the type has not carried
// a name on the stream.
func (a *asked) subscription(names []string, legacy bool) ([]string, session.Wildcard) {
	everything := slices.Contains(names, "*") || legacy && !a.named && len(names) == 0
	a.named = a.named || len(names) > 0
	names = withoutStar(names)
	if everything {
		return names, session.WildcardOn
	}
	return names, session.WildcardOff
}

// delta turns a request into the engine's terms. An unknown nonce answers nothing, but the
// subscriptions of the request still count.
func (a *asked) delta(of target, m *wire.Request, marks bool) session.Request {
	r := session.Request{Type: of.Type, Mode: world.Delta, Answer: answerOf(m, of.latest)}
	first := a.begins()
	if first {
		r.Held, r.MarkFirst = heldVersions(m.Held), marks
	}
	switch {
	case slices.Contains(m.Unsubscribe, "*"):
		r.Wildcard = session.WildcardOff
	case slices.Contains(m.Subscribe, "*"), first && len(m.Subscribe) == 0 && (of.whole || of.url == wire.VirtualHostURL):
		r.Wildcard = session.WildcardOn
	}
	r.Subscribe, r.Unsubscribe = withoutStar(m.Subscribe), withoutStar(m.Unsubscribe)
	return r
}

// begins reports whether no request of the type has come before.
func (a *asked) begins() bool {
	first := !a.begun
	a.begun = true
	return first
}

// answerOf returns a request's answer to a response. Nonces can be guessed, so an answer to
// an unsent response is ignored. It would make room for another response while the first is
// still in the outbox, which holds one of each type.
func answerOf(m *wire.Request, latest uint64) session.Answer {
	serial, err := strconv.ParseUint(m.Nonce, 10, 64)
	switch {
	case err != nil || serial > latest:
		return session.Answer{}
	case m.NACK:
		return session.Answer{Kind: session.NACK, Serial: serial, Reason: m.Reason}
	default:
		return session.Answer{Kind: session.ACK, Serial: serial}
	}
}

// claimOf parses the version that a client claims to have accepted last; nil if none. A
// foreign version differs from ours, but still means that the client holds resources.
func claimOf(version string) *world.Version {
	if version == "" {
		return nil
	}
	claim, ours := world.ParseVersion(version)
	if !ours {
		claim = world.VersionOf([]byte(version))
	}
	return &claim
}

// heldVersions parses the versions that a client claims to hold. An unknown form of version
// becomes the zero version.
func heldVersions(versions map[string]string) map[string]world.Version {
	held := make(map[string]world.Version, len(versions))
	for name, version := range versions {
		v, _ := world.ParseVersion(version)
		held[name] = v
	}
	return held
}

// withoutStar returns the names that name one resource each. The list is not written to,
// and nearly always it is returned as it is.
func withoutStar(names []string) []string {
	none := func(name string) bool { return name == "*" || name == "" }
	if !slices.ContainsFunc(names, none) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), none)
}

// serials are the serials of the newest response of each type. The sender adds them, and the
// receiver reads them.
type serials struct {
	mu sync.Mutex
	by map[world.Type]uint64
}

func (s *serials) add(r *session.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[r.Type] = r.Serial
}

// latest returns the serial of the newest response of a type; zero if there was none.
func (s *serials) latest(t world.Type) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[t]
}
