package istio

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
)

// Status is the status of a writer.
type Status struct {
	// Leading means that this replica writes. Leader names the writing replica; empty if it is
	// unknown, or there is no election.
	Leading bool
	Leader  string
	// Waiting lists the facts that must be known before the first write.
	Waiting []string
	// Trouble is why the API server cannot be followed; empty if it can.
	Trouble      string
	TroubleSince time.Time
	// Lease is why the lease is not available; empty if it is.
	Lease      string
	LeaseSince time.Time
	// Objects counts our objects in the API server.
	Objects int
	// Pending counts the keys that are not known to be in order; Oldest is since when the
	// first of them is not.
	Pending int
	Oldest  time.Time
	// Throttled counts by urgency the keys that wait because of the configured rate.
	// ThrottledSince is since when the first of them waits.
	Throttled      map[controller.Urgency]int
	ThrottledSince time.Time
	// Rate is the configured rate, in writes per second.
	Rate float64
	// Failing are the keys that could not be written, or with a hanging write.
	Failing []controller.Failure[Key]
	// Held are the objects that are left unchanged, though they should change, until their
	// source has been listed and confirmed.
	Held []Held
	// LeftOut are the parts of services that could not be written.
	LeftOut []Omission

	LastWrite time.Time
	Writes    map[Verb]uint64
	Failures  uint64
	Drift     uint64 // objects that were restored after another writer had changed them
}

// Held is an object that is left unchanged, though it should change.
type Held struct {
	Ref
	Reason string
	// Endpoints counts the endpoints that would be lost, and Since is when that was detected.
	// Both are zero while the source has not been listed.
	Endpoints int
	Since     time.Time
}

// Omission is the part of a service that could not be written.
type Omission struct {
	Key
	// Invalid is why nothing of it is written; empty if a part is.
	Invalid string
	LeftOut []LeftOut
}

// Status returns the status of the writer.
func (w *Writer) Status() Status {
	s := w.ledger.status()
	s.Objects = w.view.count()
	s.Trouble, s.TroubleSince = w.view.trouble()
	term := w.term.Load()
	s.Leading = term != nil
	if w.leader != nil {
		s.Leader, _ = w.leader.holder()
		s.Lease, s.LeaseSince = w.leader.lock.trouble.now()
	}
	if term != nil {
		t := term.Status()
		s.Waiting, s.Pending, s.Oldest, s.Failing = t.Missing, t.Length, t.Oldest, t.Failing
		s.Throttled, s.ThrottledSince = t.Throttled, t.ThrottledSince
	}
	s.Rate = w.config.QPS
	now := time.Now()
	s.Failing = withUnanswered(s.Failing, w.ledger.unanswered(now), now)
	return s
}

func (l *ledger) status() Status {
	s := Status{LeftOut: l.omissions()}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.LastWrite, s.Failures, s.Drift, s.Writes = l.lastWrite, l.failures, l.drift, maps.Clone(l.writes)
	for _, n := range l.notes {
		s.Held = append(s.Held, n.held...)
	}
	slices.SortFunc(s.Held, func(a, b Held) int { return a.compare(b.Ref) })
	return s
}

func (l *ledger) omissions() []Omission {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Omission
	for key, n := range l.notes {
		if len(n.left) == 0 && n.invalid == "" {
			continue
		}
		list = append(list, Omission{key, n.invalid, n.left})
	}
	slices.SortFunc(list, func(a, b Omission) int { return strings.Compare(a.String(), b.String()) })
	return list
}
