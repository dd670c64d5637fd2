package xds

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/push"
)

// asked is a stream's state of a type, beside the engine's.
type asked struct {
	named bool // a request has carried a name, so an empty list no longer means everything
	// wildcard is the wildcard of the names last listed (state of the world).
	wildcard push.Wildcard
	said     int // bytes of names, as [stream.measure] adds them up
}

// claimOf parses the version that a client claims to have accepted last; nil if none. A
// foreign version differs from ours, but still means that the client holds resources.
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

// subscription interprets names by the protocol: "*" among them asks for everything. So
// does an empty list of a type with a legacy wildcard, as long as the type has not carried
// a name on the stream.
func (st *asked) subscription(names []string, legacy bool) ([]string, push.Wildcard) {
	everything := slices.Contains(names, "*") || legacy && !st.named && len(names) == 0
	st.named = st.named || len(names) > 0
	names = withoutStar(names)
	if everything {
		return names, push.WildcardOn
	}
	return names, push.WildcardOff
}
