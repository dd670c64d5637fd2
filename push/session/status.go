package session

import (
	"iter"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Phase is how far a type or resource is, for display.
type Phase string

// The phases. The JSON of the admin API keeps its older words for an ACK and a NACK.
const (
	ACKed   Phase = "accepted" // the newest response was ACKed
	Waiting Phase = "waiting"  // the newest response is not answered yet
	NACKed  Phase = "refused"  // the newest response was NACKed, or a due resource cannot be sent
	Idle    Phase = "idle"     // requested, and there was nothing to send
)

// TypeStatus is the status of a type for a subscriber.
type TypeStatus struct {
	Type       string
	State      Phase
	Since      time.Time // when the state began
	Reason     string
	Sent       string // version of the newest response
	ACKed      string // version of the newest response that was ACKed
	Subscribed int    // names asked for; -1 for everything
	Held       int    // number of resources sent and held
	Pending    int    // names that wait to be looked at
	// Responses that were sent, ACKed and NACKed.
	Responses, ACKs, NACKs int
	LastNACK               time.Time // zero if there was none
	NACKReason             string    // of the last one
}

// ResourceStatus is the state of one resource for a subscriber.
type ResourceStatus struct {
	Name    string
	Version string // the held version; empty if none is held, or the version is unknown
	State   Phase
	Reason  string
	Since   time.Time // when the state began; for an ACKed resource, when the version was made here
	Pending bool      // waits to be considered: a newer version may exist
}

// StatusOf returns the status of a type.
func StatusOf(s *State) TypeStatus {
	h := &s.record
	out := TypeStatus{
		Type: s.spec.Name, State: Idle, Since: h.began, Subscribed: s.asked,
		Held: s.held.N, Pending: s.waiting() + len(s.waits.names),
		Responses: h.sends, ACKs: h.acks, NACKs: h.nacks, LastNACK: h.nackedAt, NACKReason: h.reason,
	}
	if s.wildcard {
		out.Subscribed = -1
	}
	if !h.sentAt.IsZero() {
		out.Sent = h.sent.String()
	}
	if !h.ackedAt.IsZero() {
		out.ACKed = h.acked.String()
	}
	switch {
	case h.withheld.reason != "":
		out.State, out.Since, out.Reason = NACKed, h.withheld.since, h.withheld.reason
	case len(s.unanswered) > 0:
		out.State, out.Since, out.Reason = Waiting, s.unanswered[0].waits, s.newest().reason()
	case h.nackedAt.After(h.ackedAt) && (len(s.nacked) > 0 || h.unnamed): // otherwise every NACKed name is gone
		out.State, out.Since, out.Reason = NACKed, h.nackedAt, h.reason
	case !h.ackedAt.IsZero():
		out.State, out.Since = ACKed, h.ackedAt
	case s.guard:
		out.Reason = "it keeps what it had before it connected until every source has been listed; 'isthmus sources' shows which has not"
	}
	return out
}

// CopyNames returns the names of a type that the client holds, and the other names that it
// asks for or is about to lose. The held names may be read while the state changes.
func CopyNames(s *State) (held iter.Seq[string], others []string) {
	table := slices.Clone(s.held.List)
	others = make([]string, 0, len(s.lacks.names)+len(s.removed))
	for name := range s.lacks.names {
		others = append(others, name)
	}
	for name := range s.removed {
		others = append(others, name)
	}
	return func(yield func(string) bool) {
		for _, h := range table {
			if h.Label != nil && !yield(h.Name) {
				return
			}
		}
	}, others
}

// ResourceOf returns the status of a name; ok is false if the client has no state for it.
func ResourceOf(s *State, name string) (status ResourceStatus, ok bool) {
	n, nacked := s.nacked[name]
	status = ResourceStatus{Name: name, Pending: s.Considers(name) || n.again}
	h := s.holding(name)
	by, removed := s.removed[name]
	switch {
	case h != nil:
		describe(&status, h, &s.record)
		by = uint64(h.serial)
	case !removed && !s.lacks.has(name):
		return status, false
	default:
		status.State, status.Since = Idle, s.record.began
		status.Reason = "no such resource for this client: it does not exist, or the client may not see it"
		if status.Pending || len(s.fresh) > 0 {
			status.Reason = "the name is not looked at yet"
		}
	}
	switch r := s.of(by); {
	case r != nil && (removed || h != nil && h.known == sent):
		status.State, status.Since, status.Reason = Waiting, r.waits, r.reason()
		if removed {
			status.Reason = "it is removed: " + status.Reason
		}
	case nacked:
		status.State, status.Since, status.Reason = NACKed, n.at, n.reason
	}
	return status, true
}

// describe fills in the status of a held resource, except awaited answers.
func describe(status *ResourceStatus, h *holding, last *record) {
	status.State, status.Since = ACKed, h.Made
	if h.Version != (world.Version{}) {
		status.Version = h.Version.String()
	}
	switch h.known {
	case claimed:
		status.Reason = "it held this when it connected, which is not compared yet"
	case confirmed:
		status.Reason = "it held this when it connected"
	case unsure:
		status.State, status.Since, status.Reason = NACKed, last.nackedAt, last.reason
	case sent:
	}
}
