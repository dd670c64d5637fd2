package source

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// State says how far a source's records can be relied on.
type State string

// The states of a source, as the admin API shows them.
const (
	StateListing State = "listing" // has never listed completely
	StateLive    State = "live"    // the stored records match the registry
	StateStale   State = "stale"   // cannot be read: the last known good is served
	StateHeld    State = "held"    // a suspicious drop waits, or an operator's hold is in force
)

// Status is the public state of a source. It is a copy; only the map and the slices
// are shared, and none is ever written to again.
type Status struct {
	Name  string
	Kind  string // of registry, as in the configuration
	State State
	// Reason is why the source is not live, and the next step.
	Reason string
	// Since is when State began; a state may change its reason without beginning anew.
	Since time.Time
	// LastListing is when the last complete listing was stored by this process.
	LastListing time.Time
	// Services and Endpoints count stored records; endpoints include workloads.
	Services, Endpoints int
	// Carried counts stored records of kinds that are passed on and not understood, by kind.
	Carried map[model.Kind]int
	// Held counts records that are stored although the registry no longer lists them:
	// the store's Hold records name them.
	Held int
	// HeldEndpoints counts the endpoints among the held records.
	HeldEndpoints int
	// HeldUntil is when an operator's hold ends; zero without one.
	HeldUntil time.Time
	// Changes counts the records that this process has written for the source.
	Changes Changes
	// Ignored counts objects of other kinds, as the source last counted them.
	Ignored map[string]int
	// Notices are the last notices of the source.
	Notices []model.Notice
	// Rejected are the present rejections, in the order of place and object.
	Rejected []model.Rejection
	// RejectedTotal counts all rejections so far. A rejection that a later reading
	// merely repeats is not counted again.
	RejectedTotal uint64
}

// Changes counts records by how they changed in the store.
type Changes struct{ Added, Changed, Removed uint64 }
