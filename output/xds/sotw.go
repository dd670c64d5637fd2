package xds

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/push"
)

// asked is what a stream remembers of a type, beside what the engine knows.
type asked struct {
	named bool // it once carried a name, so that emptiness no longer means everything
	// wildcard is what the names last listed say of everything (state of the world).
	wildcard push.Wildcard
	said     int // bytes of names, as [stream.measure] adds them up
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
func (st *asked) subscription(names []string, legacy bool) ([]string, push.Wildcard) {
	everything := slices.Contains(names, "*") || legacy && !st.named && len(names) == 0
	st.named = st.named || len(names) > 0
	names = withoutStar(names)
	if everything {
		return names, push.WildcardOn
	}
	return names, push.WildcardOff
}
