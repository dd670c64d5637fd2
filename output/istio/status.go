package istio

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
)

// Status is how a writer stands.
type Status struct {
	// Leading says that this replica writes, and Leader which one does; empty if
	// nobody is known to, or there is no election.
	Leading bool
	Leader  string
	// Waiting says what must be known before anything is written.
	Waiting []string
	// Trouble says why the API server cannot be followed; empty if it can.
	Trouble      string
	TroubleSince time.Time
	// Lease says why the lease cannot be had; empty if it can.
	Lease      string
	LeaseSince time.Time
	// Objects counts those of ours that the API server has.
	Objects int
	// Pending counts the keys that are not known to be in order; Oldest is since
	// when the first of them is not.
	Pending int
	Oldest  time.Time
	// Throttled counts by urgency the keys that wait for room below the configured
	// rate, and ThrottledSince is since when the first of them does.
	Throttled      map[controller.Urgency]int
	ThrottledSince time.Time
	// Rate is that of the configuration, in writes per second.
	Rate float64
	// Failing are the keys that could not be written, or of which a write hangs.
	Failing []controller.Failure[Key]
	// Held are the objects that are left as they are, though they should change,
	// until their source has been listed and confirmed.
	Held []Held
	// LeftOut is what could not be written of which service.
	LeftOut []Omission

	LastWrite time.Time
	Writes    map[Verb]uint64
	Failures  uint64
	Drift     uint64 // objects that were restored after somebody else had changed them
}

// Held is an object that is left as it is, though it should change.
type Held struct {
	Ref
	Reason string
	// Endpoints counts those that would be lost, and Since is when that was seen.
	// Zero while the source has not been listed.
	Endpoints int
	Since     time.Time
}

// Omission is what could not be written of a service.
type Omission struct {
	Key
	// Invalid says why nothing of it is written; empty if something is.
	Invalid string
	LeftOut []LeftOut
}

// Status tells how the writer stands.
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
