package source

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// report changes the status.
func (s *Supervisor) report(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// stored reports a reading that the store now says, but for what is held.
func (s *Supervisor) stored(r *reading, p plan, ignored map[string]int, now time.Time) {
	// Only who writes the source's records changes what of the status is used
	// here, so nothing is missed between this look at it and the change.
	before := s.Status()
	standing, fresh := r.rejections(before.Rejected)
	state, reason := s.standing(), before.Reason
	if state != before.State || len(p.counts) > 0 {
		reason = s.reason()
	}
	var recovered bool
	var outage []any
	s.report(func(st *Status) {
		st.enter(state, reason, now)
		s.count(st)
		recovered, outage = s.outage.recover(), s.outage.attrs(now)
		st.Rejected, st.RejectedTotal = standing, st.RejectedTotal+uint64(len(fresh))
		if r.whole {
			st.LastListing, st.listed = now, true
		}
		if r.whole || ignored != nil {
			st.Ignored = maps.Clone(ignored)
		}
	})
	failing := before.State == StateStale || before.State == StateListing
	switch {
	case failing && !recovered && len(outage) > 0: // nor was it said that it failed
	case state == StateLive && before.State != StateLive:
		s.cfg.Log.Info("source is live", append([]any{"source", s.name}, outage...)...)
	case recovered:
		s.cfg.Log.Info("source is read again", append([]any{"source", s.name, "state", string(state)}, outage...)...)
	}
	if len(p.began) > 0 {
		s.cfg.Log.Warn("a suspicious drop is held", "source", s.name, "reason", reason)
	}
	if logged, silent := s.repeats.unsaid(fresh, now); len(logged) > 0 {
		attrs := []any{"source", s.name, "count", len(logged), "err", logged[0].text()}
		if silent > 0 {
			attrs = append(attrs, "unlogged", silent)
		}
		s.cfg.Log.Warn("objects rejected", attrs...)
	}
}

func (f Rejection) text() string {
	text := f.Reason
	for _, part := range []string{f.Field, f.Object, f.Where} {
		if part != "" {
			text = part + ": " + text
		}
	}
	return text
}

// failed reports why the source ended and when it is run again.
func (s *Supervisor) failed(err error, delay time.Duration) {
	s.fail(fmt.Sprintf("%v; trying again within %s", err, max(delay.Round(time.Second), time.Second)))
	attrs, now := []any{"source", s.name, "err", err}, time.Now()
	p, panicked := errors.AsType[*panicError](err)
	if panicked {
		attrs = append(attrs, "stack", string(p.stack))
	}
	s.mu.Lock()
	say := s.outage.fail(err.Error(), panicked, now)
	attrs = append(attrs, s.outage.attrs(now)...)
	s.mu.Unlock()
	if say {
		s.cfg.Log.Warn("source failed", attrs...)
	}
}

// fail reports that the registry cannot be mirrored. What is stored stays, so
// a source that has ever listed, be it in an earlier process, is stale.
func (s *Supervisor) fail(reason string) {
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

func (s *Supervisor) lastKnownGood() string {
	if s.cfg.Restored.IsZero() {
		return "serving the last known good"
	}
	return "serving the last known good from " + s.cfg.Restored.UTC().Format(time.RFC3339)
}

// count counts what is stored.
func (s *Supervisor) count(st *Status) {
	st.Services, st.Endpoints, st.Held = s.index.services(), s.index.endpoints(), s.holds.stock.stored
}

// standing is the state of a source whose last reading is stored.
func (s *Supervisor) standing() State {
	if s.holds.empty() {
		return StateLive
	}
	return StateHeld
}

// reason says why it is not live.
func (s *Supervisor) reason() string {
	if s.holds.empty() {
		return ""
	}
	return s.holds.text(s.name, s.index.endpoints(), s.cfg.Hold)
}
