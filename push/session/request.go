package session

import (
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Request is a subscriber's message about one type, in the engine's terms. The protocol
// fills it in; all parts may come together.
type Request struct {
	Type world.Type
	// Mode is how the subscriber takes the type. It counts on the type's first request. With
	// EachTime, it counts on every request, for the next response.
	Mode     world.Mode
	EachTime bool
	// Either means that a WholeState subscriber takes increments as well. It gets increments
	// instead of a full set in two cases. The set is too large for a message, or it would have
	// to wait until every source has been listed.
	Either bool
	// Confirm asks for an answer to the type's first request even if there is nothing to send.
	Confirm bool
	// MarkFirst asks for marks on the responses of the type's first state, and on the one that
	// completes it. It counts on the first request of a Delta subscriber.
	MarkFirst bool
	Answer    Answer

	// Replace makes Names the full set of subscribed names, as whole-state
	// requests do. Names that are new are sent even if they were sent before.
	Replace bool
	Names   []string
	// Digest, if not 0, is a hash of Names. If it equals the digest of the names as last
	// listed, Names may be empty.
	Digest uint64
	// Overtaken marks a request with Replace that crossed a response in flight. Only the names
	// that it drops count, because the subscriber has forgotten them. Its answer to the
	// response will repeat the rest.
	Overtaken bool

	// Subscribe adds names, and Unsubscribe, after it, drops some. A name that
	// is subscribed again is sent again.
	Subscribe, Unsubscribe []string

	// Wildcard asks for all existing names, or stops asking.
	Wildcard Wildcard

	// Held is the versions that a reconnecting Delta subscriber already has. It counts on the
	// type's first request only.
	Held map[string]world.Version
	// Claim is the version that a reconnecting WholeState subscriber claims to have ACKed
	// last. It is no proof that the subscriber still holds that version: it may have applied
	// parts of a later response that it NACKed.
	Claim *world.Version
}

// Answer is a subscriber's answer to a response.
type Answer struct {
	Kind   AnswerKind
	Serial uint64 // of the response; an answer to an unawaited response is ignored
	Reason string // of a NACK
}

// AnswerKind distinguishes an ACK, a NACK and neither.
type AnswerKind int

// The answers to a response.
const (
	NoAnswer AnswerKind = iota
	ACK
	NACK
)

// Wildcard starts, keeps or ends a subscription to everything.
type Wildcard int

// The changes of a wildcard.
const (
	WildcardKeep Wildcard = iota
	WildcardOn
	WildcardOff
)

// Response is a message to a subscriber.
type Response struct {
	Type world.Type
	Mode world.Mode
	// Serial is unique within the subscriber; an answer names it.
	Serial uint64
	// Version is a hash of everything of the type that the subscriber holds once it has
	// applied the response.
	Version   world.Version
	Resources []*world.Resource
	Removed   []string // for Delta subscribers
	// First marks a response of the first state, and Ends the response that completes it. Both
	// are set only for a subscriber with [Request].MarkFirst. A response that completes the
	// first state may have no content.
	First, Ends bool

	Since time.Time // commit of its oldest change; zero if unknown
	Bytes int       // of its resources and removed names
}

// unknownClaim is the claim of a subscriber that may hold any version.
var unknownClaim = world.VersionOf([]byte("what nobody knows"))

// Unknown is the claim of a WholeState subscriber that cannot name its version. The full
// set waits until every source has been listed.
func Unknown() *world.Version { return &unknownClaim }
