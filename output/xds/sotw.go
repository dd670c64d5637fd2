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

// sotwRequest turns a message into the engine's terms; ok is false for one
// that a newer one supersedes.
func (s *stream) sotwRequest(t push.Type, m *discoveryv3.DiscoveryRequest) (r push.Request, ok bool) {
	r = push.Request{Type: t, Replace: true}
	latest := s.latest(t)
	switch nonce := m.GetResponseNonce(); {
	case nonce == "" || latest == 0:
		// The first request of a type, whatever nonce it carries, or a change of
		// subscription that answers nothing.
	case nonce != nonceOf(latest):
		return r, false // the client will answer the newest response, too
	case m.GetErrorDetail() != nil:
		r.Answer = push.Answer{Verdict: push.Refuse, Serial: latest, Reason: m.GetErrorDetail().GetMessage()}
	default:
		r.Answer = push.Answer{Verdict: push.Accept, Serial: latest}
	}
	if version, known := push.ParseVersion(m.GetVersionInfo()); known {
		r.Claim = &version
	}
	r.Names, r.Wildcard = s.sotw[t].subscription(m.GetResourceNames(), s.server.types[t].Whole)
	return r, true
}

// subscription reads names as the protocol does: "*" among them asks for
// everything, and so does an empty list of a type that may be asked for that
// way, as long as the type has not carried a name on the stream.
func (st *sotwType) subscription(names []string, legacy bool) ([]string, push.Wildcard) {
	everything := slices.Contains(names, "*") || legacy && !st.named && len(names) == 0
	st.named = st.named || len(names) > 0
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "*" || name == "" })
	if everything {
		return names, push.WildcardOn
	}
	return names, push.WildcardOff
}
