package source

import "time"

// State says how far a source's records can be relied on.
type State string

// The states of a source, as the admin API shows them.
const (
	StateListing State = "listing" // has never listed completely
	StateLive    State = "live"    // what is stored is what the registry says
	StateStale   State = "stale"   // cannot be read: the last known good is served
	StateHeld    State = "held"    // a suspicious drop waits
)

// Status is what an operator may know about a source. It is a copy; only the
// map and the slices are shared, and none is ever written to again.
type Status struct {
	Name  string
	Kind  string // of registry, as in the configuration
	State State
	// Reason says why the source is not live, and what happens next.
	Reason string
	// Since is when State began; a state may change its reason without beginning anew.
	Since time.Time
	// LastListing is when the last complete listing was stored by this process.
	LastListing time.Time
	// Services and Endpoints count what is stored; endpoints include workloads.
	Services, Endpoints int
	// Held counts records that are stored although the registry no longer lists them:
	// the store says which in its Hold records.
	Held int
	// Ignored counts objects of other kinds, as the source last counted them.
	Ignored map[string]int
	// Notices are what the source last said that people should know.
	Notices []Notice
	// Rejected is what could not be taken, in the order of place and object.
	Rejected []Rejection
	// RejectedTotal counts the rejections there have ever been. One that a later
	// reading merely repeats is not counted again.
	RejectedTotal uint64

	listed bool // ever, as the store's mark says
}

// enter moves to a state, or gives the state it is in a new reason.
func (s *Status) enter(state State, reason string, now time.Time) {
	if s.State != state {
		s.State, s.Since = state, now
	}
	s.Reason = reason
}
