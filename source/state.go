package source

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// state is the state of a supervised source. Its fields are assigned in this file
// alone, by events. These events decide the [Status]:
//
//	restored    a run begins               listing → stale, if it was ever listed
//	mirrored    a reading is stored        any → live, or held while anything is
//	lost        it cannot be mirrored      any → stale, or listing if it never was listed
//	released    an operator has decided    held → live
//	failed      a run has ended by itself, and how often that was logged
//	recovered   it has been live for long enough to forget that
//
// Further events concern its records in the store, and its baselines:
//
//	reread      the store was read, as another writer may have changed it
//	relisting   all of it is listed, and the index is rebuilt by the comparison
//	planned     some writes are to be committed; if the store rejects them, undone comes next
//	held        so are the new holds, and the ended ones
//	undone      the store rejected them
//	offered     another system has a baseline of the source, to be judged
//	inherited   the same, from a supervisor that was there before
//	decided     it was judged, and the judgement is stored
//	releasing   an operator deletes the held records, or may have
//	unmarked    earlier numbers of services count no more, by an operator's order
//	filled      objects were rejected, as their namespace has no room for them
//	asked       whether the source is to list again, because of holds or a release
type state struct {
	// These fields belong to the writer; see [Supervisor].
	index     *index // of the stored records
	holds     *holds
	marks     *marks
	baselines []*baselineState     // of other systems; see [Supervisor.Offer]
	listed    bool                 // completely, since the start
	relist    *time.Ticker         // asks the source to list again
	every     time.Duration        // interval of relist; zero if it is stopped
	unsure    bool                 // the store may differ from the registry, until it lists
	full      map[string]footprint // of namespaces with objects rejected for want of room, as it was then

	mu     sync.Mutex // guards status and outage; never held across a call
	status Status
	outage outage
}

// begin initializes the state of a new supervisor.
func (s *state) begin(name string, cfg Config) {
	s.index, s.holds, s.marks = newIndex(), newHolds(), newMarks()
	s.relist = time.NewTicker(cfg.Hold.interval())
	s.relist.Stop()
	s.status = Status{Name: name, Kind: cfg.Kind}
	s.status.enter(StateListing, "waiting for its first complete listing", time.Now())
}

// report changes the status.
func (s *state) report(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// restored reports the stored records before the source is run. Records that an
// earlier process has listed completely are served unchanged.
func (s *Supervisor) restored() {
	s.report(func(st *Status) {
		if s.index.marked() && st.State == StateListing {
			st.enter(StateStale, s.lastKnownGood()+" until the registry has been listed", time.Now())
		}
		st.listed = st.listed || s.index.marked()
		s.count(st)
	})
}

// mirroring is the change by a stored reading, for the log.
type mirroring struct {
	from, to  State
	reason    string
	first     bool // the first complete listing
	fresh     []Rejection
	recovered bool  // the failure was logged, and ends
	outage    []any // log attributes of the failures
}

// noted is the part of a listing for people alone. A nil field was not looked for.
type noted struct {
	ignored map[string]int
	notices []Notice
}

// mirrored reports a stored reading, apart from held records.
func (s *Supervisor) mirrored(r *reading, p plan, n noted, now time.Time) mirroring {
	s.listed = s.listed || r.whole
	s.asked(r.whole)
	// Only the writer of the source's records changes the parts of the status used
	// here. So no change is missed between this look and the report.
	before := s.own()
	standing, fresh := r.rejections(before.Rejected)
	m := mirroring{from: before.State, to: s.standing(), reason: before.Reason, fresh: fresh}
	if m.to != m.from || p.touches() {
		m.reason = s.reason()
	}
	s.report(func(st *Status) {
		st.enter(m.to, m.reason, now)
		s.count(st)
		m.recovered, m.outage = s.outage.recover(), s.outage.attrs(now)
		st.Rejected, st.RejectedTotal = standing, st.RejectedTotal+uint64(len(fresh))
		if r.whole {
			m.first = st.LastListing.IsZero()
			st.LastListing, st.listed = now, true
		}
		if r.whole || n.ignored != nil {
			st.Ignored = maps.Clone(n.ignored)
		}
		if r.whole || n.notices != nil {
			st.Notices = slices.Clone(n.notices)
		}
	})
	return m
}

// lost reports that the registry cannot be mirrored. Stored records stay, so a source
// that has ever listed, even in an earlier process, is stale.
func (s *Supervisor) lost(reason string) {
	s.report(func(st *Status) {
		state := StateListing
		if st.listed {
			state = StateStale
		}
		if st.listed && st.LastListing.IsZero() {
			reason += "; until then " + s.lastKnownGood()
		}
		st.enter(state, reason, time.Now())
	})
}

// released reports that no record is held any more. A failure to read the registry is
// another matter.
func (s *Supervisor) released() {
	s.report(func(st *Status) {
		s.count(st)
		if st.State == StateHeld {
			st.enter(StateLive, "", time.Now())
		}
	})
}

// failed counts a run that has ended. It returns whether to log that, and the log
// attributes of the failures so far.
func (s *state) failed(text string, defect bool, now time.Time) (failures int, say bool, attrs []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say = s.outage.fail(text, defect, now)
	return s.outage.failures, say, s.outage.attrs(now)
}

// recovered forgets the failures so far.
func (s *state) recovered() { s.report(func(*Status) { s.outage = outage{} }) }

func (s *state) reread(i *index, h *holds) {
	s.index, s.holds = i, h
	s.flag()
}

func (s *state) relisting() { s.index = newIndex() } // filled as the comparison goes

// flag marks the held workloads in the index.
func (s *state) flag() {
	for object := range s.holds.objects {
		s.index.selections.hold(object, true)
	}
}

func (s *state) planned(writes []model.Write) { s.index.commit(writes) }

func (s *state) held(p plan, now time.Time) (dropped map[part]held) {
	dropped = s.holds.apply(p, now)
	for is := range dropped {
		s.index.selections.hold(is.ref, false)
	}
	for _, c := range p.held {
		s.index.selections.hold(c.ref, true)
	}
	return dropped
}

// undone reverts a plan by reading the store, which may have committed it after all.
// The clocks of records that were to be dropped come from dropped.
func (s *Supervisor) undone(p plan, dropped map[part]held) {
	s.reindex()
	s.marks.note(p.falls, slices.DeleteFunc(p.departures, func(d departed) bool {
		_, stored := s.find(d.record.Ref)
		return stored
	}), time.Now())
	for is, was := range dropped {
		s.holds.wind(is, was)
	}
}

func (s *state) offered(b Baseline) {
	at := slices.IndexFunc(s.baselines, func(f *baselineState) bool { return f.name == b.Name })
	if at < 0 {
		at = len(s.baselines)
		s.baselines = append(s.baselines, newBaselineState(b.Name))
	}
	s.baselines[at].pending = append(s.baselines[at].pending, b)
}

func (s *state) inherited(before *state) {
	s.baselines, s.listed, s.marks = before.baselines, before.listed, before.marks
}

func (s *state) decided(p plan, baselines []*baselineState) {
	s.baselines = baselines
	s.holds.tick(p.lacked, time.Now())
}

// filled stores the footprints of namespaces that had no room for some objects.
func (s *state) filled(full map[string]footprint, whole bool) {
	if whole || len(s.full) == 0 {
		s.full = full
		return
	}
	maps.Copy(s.full, full)
}

// hasRoom reports whether such a namespace has become smaller since. A listing then
// has the objects that may fit now.
func (s *state) hasRoom() bool {
	for namespace, was := range s.full {
		if !was.within(s.index.inAll[namespace]) {
			return true
		}
	}
	return false
}

func (s *state) releasing() { s.unsure = true }

func (s *state) unmarked() { s.marks = newMarks() }

// asked requests listings, counted from the last complete one, while a record is held
// or a rejected object may fit now. The first one comes soon if only a listing can
// show the registry's state.
func (s *Supervisor) asked(listed bool) {
	s.unsure = s.unsure && !listed
	held := !s.holds.empty() || slices.ContainsFunc(s.baselines, func(f *baselineState) bool { return !f.holds.empty() })
	every := time.Duration(0)
	switch interval := s.cfg.Hold.interval(); {
	case s.unsure:
		every = min(askWait, interval)
	case held, s.hasRoom():
		every = interval
	}
	switch {
	case every == 0:
		s.relist.Stop()
	case listed || every != s.every:
		s.relist.Reset(every)
	}
	s.every = every
}
