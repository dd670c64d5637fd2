package xds

import (
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/push"
)

// deltaRequest turns a message into the engine's terms. An unknown nonce answers nothing,
// but the message's subscriptions still count.
func (s *stream) deltaRequest(t push.Type, m *discoveryv3.DeltaDiscoveryRequest) push.Request {
	r := push.Request{Type: t, Mode: push.Delta, Answer: s.answerOf(t, m)}
	first := s.types[t] == nil
	s.of(t)
	if first {
		r.Held = heldVersions(m.GetInitialResourceVersions())
		r.MarkFirst = s.marks
	}
	subscribe, unsubscribe := m.GetResourceNamesSubscribe(), m.GetResourceNamesUnsubscribe()
	switch {
	case slices.Contains(unsubscribe, "*"):
		r.Wildcard = push.WildcardOff
	case slices.Contains(subscribe, "*"), first && len(subscribe) == 0 && (s.server.engine.Whole(t) || s.url(t) == virtualHostURL):
		r.Wildcard = push.WildcardOn
	}
	r.Subscribe, r.Unsubscribe = withoutStar(subscribe), withoutStar(unsubscribe)
	return r
}

// heldVersions parses the versions that a client claims to hold. An unknown form of version
// becomes the zero version.
func heldVersions(versions map[string]string) map[string]push.Version {
	held := make(map[string]push.Version, len(versions))
	for name, version := range versions {
		v, _ := push.ParseVersion(version)
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
