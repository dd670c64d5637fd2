package istio

import (
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
)

// Status is the status of a writer.
type Status struct {
	// Leading means that this replica writes. Leader names the writing replica; empty if it is
	// unknown, or there is no election.
	Leading bool
	Leader  string
	// Waiting lists the facts that must be known before the first write. WaitingSince is
	// since when this replica leads without them.
	Waiting      []string
	WaitingSince time.Time
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
	Failing []controller.Failure[object.Key]
	// LeftOut are the parts of services that could not be written.
	LeftOut []write.Omission
	// Counts has the writes, and the objects that are left unchanged, though they should
	// change, until their source has been listed and confirmed.
	write.Counts
}

// Status returns the status of the writer.
func (w *Writer) Status() Status {
	s := Status{LeftOut: w.written.Omissions(), Counts: w.written.Counts(), Objects: w.view.Count(), Rate: w.config.QPS}
	s.Trouble, s.TroubleSince = w.view.Trouble()
	term := w.term.Load()
	s.Leading = term != nil
	if w.leader != nil {
		s.Leader, _ = w.leader.Holder()
		s.Lease, s.LeaseSince = w.leader.Trouble()
	}
	if term != nil {
		t := term.Status()
		s.Waiting, s.WaitingSince = t.Missing, t.MissingSince
		s.Pending, s.Oldest, s.Failing = t.Length, t.Oldest, t.Failing
		s.Throttled, s.ThrottledSince = t.Throttled, t.ThrottledSince
	}
	now := time.Now()
	s.Failing = w.written.WithUnanswered(s.Failing, now)
	return s
}
