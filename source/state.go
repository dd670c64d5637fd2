package source

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// state is what a supervisor knows of its source. Its fields are assigned in this
// file alone, by what happens. These decide what [Status] shows:
//
//	restored    a run begins               listing → stale, if it was ever listed
//	mirrored    a reading is stored        any → live, or held while anything is
//	lost        it cannot be mirrored      any → stale, or listing if it never was listed
//	released    an operator has decided    held → live
//	failed      a run has ended by itself, and how often that was said
//	recovered   it has been live for long enough to forget that
//
// These are about its records in the store, and about what others have of it:
//
//	reread      the store was read, as somebody else may have written to it
//	relisting   all of it is listed, and what is compared is known from here on
//	planned     some writes are to be committed; if the store does not take them, undone comes next
//	held        so is what is held from here on, and what is not any more
//	undone      the store did not take them
//	offered     somebody else has something of the source, and it is to be judged
//	inherited   the same, from a supervisor that was there before
//	decided     it was judged, and the store says how
//	releasing   an operator deletes what is held, or may have
//	unmarked    what services had before counts no more, by an operator's word or as the store was restored
//	filled      objects were rejected, as their namespace has no room for them
//	asked       whether the source is to list again, for what is held or was released
type state struct {
	// These belong to the writer; see [Supervisor].
	index     *index // of the stored records
	holds     *holds
	marks     *marks
	baselines []*baselineState     // what others have of the source; see [Supervisor.Offer]
	listed    bool                 // completely, since the start
	relist    *time.Ticker         // asks the source to list again
	every     time.Duration        // how often it does; zero if it does not
	unsure    bool                 // whether the store has what the registry has, until it lists
	full      map[string]footprint // of namespaces from which objects were rejected for want of room, as it was then

	mu     sync.Mutex // guards status and outage; never held across a call
	status Status
	outage outage
}

// begin is the state before anything is known.
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

// restored reports what the store holds before the source is run. What an
// earlier process has listed completely is served as it is.
func (s *Supervisor) restored() {
	s.report(func(st *Status) {
		if s.index.marked() && st.State == StateListing {
			st.enter(StateStale, s.lastKnownGood()+" until the registry has been listed", time.Now())
		}
		st.listed = st.listed || s.index.marked()
		s.count(st)
	})
}

// mirroring is what has changed with a reading that was stored, for the log.
type mirroring struct {
	from, to  State
	reason    string
	first     bool // it is the first complete listing
	fresh     []Rejection
	recovered bool  // the log has said that it failed
	outage    []any // what the log is to say of the failures
}

// noted is what a listing says for people alone. What of it is nil was not looked for.
type noted struct {
	ignored map[string]int
	notices []Notice
}

// mirrored reports a reading that the store now says, but for what is held.
func (s *Supervisor) mirrored(r *reading, p plan, n noted, now time.Time) mirroring {
	s.listed = s.listed || r.whole
	s.asked(r.whole)
	// Only who writes the source's records changes what of the status is used
	// here, so nothing is missed between this look at it and the change.
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

// lost reports that the registry cannot be mirrored. What is stored stays, so
// a source that has ever listed, be it in an earlier process, is stale.
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

// released reports that nothing is held any more. Whether the registry can be
// read is another matter.
func (s *Supervisor) released() {
	s.report(func(st *Status) {
		s.count(st)
		if st.State == StateHeld {
			st.enter(StateLive, "", time.Now())
		}
	})
}

// failed counts a run that has ended, and says whether the log is to say so, and
// what of the failures so far.
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

// flag has the index know which workloads are held.
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

// undone takes back what was planned, by what the store says, which may be that it took
// it after all. It does not know the clocks of the records that were to be dropped.
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

// filled notes the footprints of namespaces that had no room for some objects.
func (s *state) filled(full map[string]footprint, whole bool) {
	if whole || len(s.full) == 0 {
		s.full = full
		return
	}
	maps.Copy(s.full, full)
}

// hasRoom reports whether such a namespace has become smaller since. A listing then has
// the objects that may fit now.
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

// asked has the source asked to list again while anything is held or a rejected object
// may fit now, counted from its last complete listing, and soon where that alone can tell
// what is there.
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
