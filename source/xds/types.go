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
	last    time.Time // answer; zero before the first
	large   bool      // the last answer was, so that there may be more
	dropped bool      // whatever is said of it does not count any more
	version string    // of the last answer that was ACKed
	// names are those of the first answers of a delta stream that does not resume:
	// what they lack is gone. It is nil otherwise, and once the first listing is made.
	names map[string]bool
	// resumes says that the server was given what is held, and resumed that it took
	// notice of it.
	resumes, resumed bool
}

// pace is how long things may take.
type pace struct {
	delta  time.Duration // until the first answer, before the other variant is tried
	answer time.Duration // until the first answer of each type
	quiet  time.Duration // after a small first answer in the delta variant, until it is complete
	more   time.Duration // likewise after a large one, which may be one of several
}

var usual = pace{delta: 5 * time.Second, answer: 10 * time.Second, quiet: 100 * time.Millisecond, more: 5 * time.Second}

// large is the size of an answer that may have been split: half of what the peers
// take at most that are not configured to take more.
const large = 2 << 20

// answered reports whether the first state of a type is complete, or when that has to
// be looked at again. The delta variant does not say where a state ends that is sent in
// several answers.
func (k *asked) answered(p pace, delta bool, now time.Time) (done bool, again time.Time) {
	if k.last.IsZero() {
		return false, k.at.Add(p.answer)
	}
	if !delta {
		return true, time.Time{}
	}
	end := k.last.Add(p.quiet)
	if k.large {
		end = k.last.Add(p.more)
	}
	return !now.Before(end), end
}
