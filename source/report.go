package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// stored reports a stored reading to the status, and logs changes.
func (s *Supervisor) stored(r *reading, p plan, n noted, now time.Time) {
	m := s.mirrored(r, p, n, now)
	if m.first && s.cfg.Listed != nil {
		s.cfg.Listed()
	}
	failing := m.from == StateStale || m.from == StateListing
	switch {
	case failing && !m.recovered && len(m.outage) > 0: // its failure was not logged either
	case m.to == StateLive && m.from != StateLive:
		s.cfg.Log.Info("source is live", append([]any{"source", s.name}, m.outage...)...)
	case m.recovered:
		s.cfg.Log.Info("source is read again", append([]any{"source", s.name, "state", string(m.to)}, m.outage...)...)
	}
	if len(p.began) > 0 {
		s.cfg.Log.Warn("a suspicious drop is held", "source", s.name, "reason", m.reason)
	}
	if logged, silent := s.repeats.unsaid(m.fresh, now); len(logged) > 0 {
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

// ended reports why a run ended, and returns how long to wait before the next.
func (s *Supervisor) ended(err error) (delay time.Duration) {
	p, panicked := errors.AsType[*panicError](err)
	failures, say, outage := s.failed(err.Error(), panicked, time.Now())
	delay = wait.Backoff{Min: s.cfg.MinBackoff, Max: s.cfg.MaxBackoff}.After(failures, rand.Float64())
	s.lost(fmt.Sprintf("%v; trying again within %s", err, max(delay.Round(time.Second), time.Second)))
	if say {
		attrs := []any{"source", s.name, "err", err}
		if panicked {
			attrs = append(attrs, "stack", string(p.stack))
		}
		s.cfg.Log.Warn("source failed", append(attrs, outage...)...)
	}
	return delay
}

func (s *Supervisor) lastKnownGood() string {
	if s.cfg.Restored.IsZero() {
		return "serving the last known good"
	}
	return "serving the last known good from " + s.cfg.Restored.UTC().Format(time.RFC3339)
}

// count sets the counts of stored records.
func (s *Supervisor) count(st *Status) {
	st.Services, st.Endpoints, st.Held = s.index.services(), s.index.endpoints(), s.holds.stock.stored
}

// standing returns the state of a source after its last reading was stored.
func (s *Supervisor) standing() State {
	if s.holds.empty() {
		return StateLive
	}
	return StateHeld
}

// reason returns why the source is not live.
func (s *Supervisor) reason() string {
	if s.holds.empty() {
		return ""
	}
	return s.holds.text(s.name, s.index.endpoints(), s.cfg.Hold)
}
