package xds

import (
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// urls returns the type URLs of a kind, the newest first. A server older than Istio
// 1.24 may know only the older type, and answers the newest with nothing.
func urls(kind istio.Definition) []string {
	versions := kind.Versions()
	older := kind
	older.Version = versions[len(versions)-1]
	if kind.Version != versions[0] || older == kind {
		return []string{kind.URL()}
	}
	return []string{kind.URL(), older.URL()}
}

// kind is a requested kind with its type URLs, the newest first.
type kind struct {
	istio.Definition
	urls []string
}

// asked is a type that was asked for on a stream.
type asked struct {
	kind    kind
	url     string
	at      time.Time
	waits   time.Time // time of the last request that an answer may follow
	last    time.Time // time of the last usable answer; zero before the first
	large   bool      // the last answer was large, so that more may follow
	nacked  string    // why the last answer was NACKed, while none could be used
	dropped bool      // answers for the type no longer count
	version string    // of the last answer that was ACKed
	// names are the names in the first answers of a delta stream that does not resume: other
	// held names are gone. The set is nil otherwise, and once the first listing is made.
	names map[string]bool
	// resumes says that the server received the held versions. resumed says that it
	// handled the names that it received.
	resumes, resumed bool
	// marks says that the server marks its first state, ends that it has marked the end.
	marks, ends bool
	// claims says that the server received the unspoken names.
	claims bool
	// unspoken are names stored, or held from another stream, that the server has
	// neither sent nor removed on this one.
	unspoken map[string]bool
}

// pace bounds waits.
type pace struct {
	delta   time.Duration // until the first answer, before the other variant is tried
	answer  time.Duration // until the first answer of each type
	patient time.Duration // likewise, for a server that was too slow before; an upper bound
	mark    time.Duration // between two answers of a server that marks its first state
	// The fields below are the silence after which the first state of a delta server
	// without marks counts as complete. The silence lasts at least three round trips,
	// up to the last of these.
	quiet   time.Duration // after a small answer
	more    time.Duration // after a large one, or if nothing is known from before
	missing time.Duration // while stored names have not come
}

var usual = pace{
	delta: 5 * time.Second, answer: 10 * time.Second, patient: time.Minute, mark: time.Minute,
	quiet: time.Second, more: 5 * time.Second, missing: 10 * time.Second,
}

// An answer of large bytes, or of manyNames resources, may have been split. The value
// of large is half the usual maximum message size of peers.
const (
	large     = 2 << 20
	manyNames = 1000
)

// roundTrips is the number of round trips that a server may be silent within a first state.
const roundTrips = 3
