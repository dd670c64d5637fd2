package supervise

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// status keeps and logs the state of a source. Its methods are the events that decide
// the state:
//
//	restored    a run begins               listing → stale, if it was ever listed
//	mirrored    a reading is stored        any → live, or held while anything is
//	lost        it cannot be mirrored      any → stale, or listing if it never was listed
//	released    an operator has decided    held → live
//	ended       a run has ended by itself  as lost
//	recovered   it has been live for long enough to forget its failures
//
// It may be read from anywhere. Events come from the writer of the source's records, or
// from the goroutine that runs the source.
type status struct {
	cfg     Config
	repeats repeats // logged rejections; belongs to the writer
	ignored ignoredKinds

	mu     sync.Mutex // guards the rest; never held across a call
	now    source.Status
	ever   bool // it was listed, according to the store's mark
	outage outage
	turned chan struct{} // holds a token once the state has changed
}

func newStatus(name string, cfg Config) *status {
	s := &status{cfg: cfg, ignored: ignoredKinds{}, now: source.Status{Name: name, Kind: cfg.Kind}, turned: make(chan struct{}, 1)}
	s.enter(source.StateListing, unlisted, time.Now())
	return s
}

// get returns a copy of the status.
func (s *status) get() source.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// unlisted is the reason of a source before its first reading has ended.
const unlisted = "waiting for its first complete listing"

// enter moves to a state, or gives the present state a new reason. It adds an event about a
// new state, and about the first failure of a source that was never listed.
func (s *status) enter(state source.State, reason string, now time.Time) {
	if s.now.State != state || s.now.Reason == unlisted && reason != unlisted {
		if s.now.State != state {
			s.now.State, s.now.Since = state, now
			select {
			case s.turned <- struct{}{}:
			default: // it will see this state, too
			}
		}
		text := "is " + string(state)
		if reason != "" {
			text += ": " + reason
		}
		s.cfg.Events.Add(events.Event{Kind: events.State, Source: s.now.Name, Text: text})
	}
	s.now.Reason = reason
}

// count sets the counts of stored records.
func (s *status) count(c counts) {
	s.now.Services, s.now.Endpoints, s.now.Held, s.now.HeldEndpoints = c.services, c.endpoints, c.held, c.heldEndpoints
	s.now.Carried = c.carried
	s.now.Changes = c.changes
}

// restored reports the stored records before the source is run. Records that an
// earlier process has listed completely are served unchanged.
func (s *status) restored(c counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.marked && s.now.State == source.StateListing {
		s.enter(source.StateStale, s.lastKnownGood()+" until the registry has been listed", time.Now())
	}
	s.ever = s.ever || c.marked
	s.count(c)
}

// stored is a reading that is stored now, as far as the status shows it.
type stored struct {
	whole  bool // a complete listing
	state  source.State
	reason string
	began  bool // a drop is held from now on
	counts counts

	rejected, fresh []model.Rejection // all, and the new ones
	ignored         map[string]int    // nil if not looked for
	notices         []model.Notice
	at              time.Time
}

// mirrored reports a stored reading, and logs changes. Only the writer of the source's
// records calls it.
func (s *status) mirrored(r stored) {
	before := s.get()
	first, recovered, outage := s.set(r)
	if first && s.cfg.Listed != nil {
		s.cfg.Listed()
	}
	log := s.cfg.Log.With("source", before.Name)
	failing := before.State == source.StateStale || before.State == source.StateListing
	switch {
	case failing && !recovered && len(outage) > 0: // its failure was not logged either
	case r.state == source.StateLive && before.State != source.StateLive:
		log.Info("source is live", outage...)
	case recovered:
		log.Info("source works again", append([]any{"state", string(r.state)}, outage...)...)
	}
	if r.began {
		log.Warn("suspicious drop: the missing endpoints are held", "reason", r.reason)
	}
	if logged, silent := s.repeats.unsaid(r.fresh, r.at); len(logged) > 0 {
		attrs := []any{"count", len(logged), "err", textOf(logged[0])}
		if silent > 0 {
			attrs = append(attrs, "unlogged", silent)
		}
		log.Warn("objects rejected", attrs...)
	}
	if kinds := s.ignored.fresh(r.ignored); kinds != "" {
		log.Warn("objects of these kinds have no effect here", "kinds", kinds)
	}
}

// set sets the status after a stored reading. It returns whether this was the first
// complete listing, whether a logged failure ends, and the log attributes of the failures.
func (s *status) set(r stored) (first, recovered bool, outage []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(r.state, r.reason, r.at)
	s.count(r.counts)
	recovered, outage = s.outage.recover(), s.outage.attrs(r.at)
	s.now.Rejected, s.now.RejectedTotal = r.rejected, s.now.RejectedTotal+uint64(len(r.fresh))
	if r.whole {
		first = s.now.LastListing.IsZero()
		s.now.LastListing, s.ever = r.at, true
	}
	if r.whole || r.ignored != nil {
		s.now.Ignored = maps.Clone(r.ignored)
	}
	if r.whole || r.notices != nil {
		s.now.Notices = slices.Clone(r.notices)
	}
	return first, recovered, outage
}

// lost reports that the registry cannot be mirrored. Stored records stay, so a source
// that has ever listed, even in an earlier process, is stale.
func (s *status) lost(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := source.StateListing
	if s.ever {
		state = source.StateStale
	}
	if s.ever && s.now.LastListing.IsZero() {
		reason += "; until then " + s.lastKnownGood()
	}
	s.enter(state, reason, time.Now())
}

// released reports that no record is held any more. A failure to read the registry is
// another matter.
func (s *status) released(c counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c)
	if s.now.State == source.StateHeld {
		s.enter(source.StateLive, "", time.Now())
	}
}

// ended reports why a run ended, and returns how long to wait before the next. Stack is
// that of a panic, else nil.
func (s *status) ended(err error, stack []byte) (delay time.Duration) {
	failures, log, outage := s.fail(err.Error(), stack != nil)
	delay = wait.Backoff{Min: s.cfg.MinBackoff, Max: s.cfg.MaxBackoff}.After(failures, rand.Float64())
	s.lost(fmt.Sprintf("%v; trying again within %s", err, max(delay.Round(time.Second), time.Second)))
	if log {
		attrs := []any{"source", s.get().Name, "err", err}
		if stack != nil {
			attrs = append(attrs, "stack", string(stack))
		}
		s.cfg.Log.Warn("source failed", append(attrs, outage...)...)
	}
	return delay
}

// fail counts a failure. It returns whether to log it, and the log attributes of the
// failures so far.
func (s *status) fail(text string, defect bool) (failures int, log bool, attrs []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	log = s.outage.fail(text, defect, now)
	return s.outage.failures, log, s.outage.attrs(now)
}

// recovered forgets the failures so far.
func (s *status) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = outage{}
}

func (s *status) lastKnownGood() string {
	if s.cfg.Restored.IsZero() {
		return "serving the last known good"
	}
	return "serving the last known good from " + s.cfg.Restored.UTC().Format(time.RFC3339)
}

// textOf describes a rejection for the log.
func textOf(f model.Rejection) string {
	text := f.Reason
	for _, part := range []string{f.Field, f.Object, f.Where} {
		if part != "" {
			text = part + ": " + text
		}
	}
	return text
}
