package xds

import (
	"time"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// urls are the names under which a kind is asked for, the newest first. A server that
// knows an older one alone, as those do that were made for Istio before 1.24, answers
// the newest with nothing.
func urls(kind mcp.Kind) []string {
	older := map[string]string{
		"networking.istio.io": "v1alpha3", "security.istio.io": "v1beta1", "telemetry.istio.io": "v1alpha1",
	}[kind.Group]
	if kind.Version != "v1" || older == "" {
		return []string{kind.URL()}
	}
	return []string{kind.URL(), kind.Group + "/" + older + "/" + kind.Name}
}

// asked is a type that was asked for on a stream.
type asked struct {
	kind    mcp.Kind
	url     string
	at      time.Time
	waits   time.Time // of the last request for it, which an answer may follow
	last    time.Time // answer that could be used; zero before the first
	large   bool      // the last answer was, so that there may be more
	nacked  string    // why the last answer was NACKed, while none could be used
	dropped bool      // whatever is said of it does not count any more
	version string    // of the last answer that was ACKed
	// names are those of the first answers of a delta stream that does not resume:
	// what they lack is gone. It is nil otherwise, and once the first listing is made.
	names map[string]bool
	// resumes says that the server was given the versions that are held, and resumed that
	// it took notice of the names that it was given.
	resumes, resumed bool
	// marks says that the server marks its first state, and ends that it has marked the end.
	marks, ends bool
	// claims says that the server was given the unspoken names.
	claims bool
	// unspoken are names that are stored, or held of another stream, and that the server
	// has neither sent nor removed on this one.
	unspoken map[string]bool
}

// pace is how long things may take.
type pace struct {
	delta   time.Duration // until the first answer, before the other variant is tried
	answer  time.Duration // until the first answer of each type
	patient time.Duration // likewise, at most, of a server that was too slow before
	mark    time.Duration // after an answer, until the next one, of a server that marks its first state
	// What follows is silence after which the first state of a delta server that marks nothing
	// is taken for complete. Three round trips is the least in any case, up to the last of these.
	quiet   time.Duration // after a small answer
	more    time.Duration // after a large one, or if nothing is known from before
	missing time.Duration // if not all that is stored has come
}

var usual = pace{
	delta: 5 * time.Second, answer: 10 * time.Second, patient: time.Minute, mark: time.Minute,
	quiet: time.Second, more: 5 * time.Second, missing: 10 * time.Second,
}

// An answer of large bytes, or of manyNames resources, may have been split: the first is half of what
// the peers take at most that are not configured to take more.
const (
	large     = 2 << 20
	manyNames = 1000
)

// roundTrips is how many of them a server may be silent for within a first state.
const roundTrips = 3
