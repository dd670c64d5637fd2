package xds

import (
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/push"
)

// sotwType is what the state-of-the-world variant remembers of one type on one
// stream, beside what the engine knows.
type sotwType struct {
	named bool // it once carried a name, so that emptiness no longer means everything
}

// sotwRequest turns a message into the engine's terms. One whose nonce is not
// that of the newest response crossed it on the way.
func (s *stream) sotwRequest(t push.Type, m *discoveryv3.DiscoveryRequest) push.Request {
	r := push.Request{Type: t, Answer: s.answerOf(t, m), Replace: true}
	// The first request of a type may carry any nonce, and a change of
	// subscription that answers nothing may carry none.
	latest, nonce := s.latest(t), m.GetResponseNonce()
	r.Overtaken = latest != 0 && nonce != "" && nonce != nonceOf(latest)
	r.Claim = claimOf(m.GetVersionInfo())
	r.Names, r.Wildcard = s.sotw[t].subscription(m.GetResourceNames(), s.server.types[t].Whole)
	return r
}

// claimOf reads what a client says it accepted last; nil if nothing. What we
// never wrote is something else, but it does hold something.
func claimOf(version string) *push.Version {
	if version == "" {
		return nil
	}
	claim, ours := push.ParseVersion(version)
	if !ours {
		claim = push.VersionOf([]byte(version))
	}
	return &claim
}

// subscription reads names as the protocol does: "*" among them asks for
// everything, and so does an empty list of a type that may be asked for that
// way, as long as the type has not carried a name on the stream.
func (st *sotwType) subscription(names []string, legacy bool) ([]string, push.Wildcard) {
	everything := slices.Contains(names, "*") || legacy && !st.named && len(names) == 0
	st.named = st.named || len(names) > 0
	names = withoutStar(names)
	if everything {
		return names, push.WildcardOn
	}
	return names, push.WildcardOff
}
