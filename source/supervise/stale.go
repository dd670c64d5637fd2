package supervise

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// followStale stores in the mark of the source that it has been stale for the time of its hold, and removes
// that once it is not. A listing has removed it already; a change may come first.
func (s *Supervisor) followStale(ctx context.Context) {
	var marked time.Time // since when the source is stale, as the mark says
	for {
		since := s.status.staleSince()
		var due <-chan time.Time
		if since != marked {
			due = time.After(time.Until(since.Add(s.cfg.Hold.For))) // at once if it is stale no more
		}
		// Cases: the time of the hold has passed; the state of the source is another; the supervisor ends.
		select {
		case <-due:
			if s.markStale(ctx, since) {
				marked = since
			} else if !wait.Sleep(ctx, s.cfg.MaxBackoff) {
				return
			}
		case <-s.status.turned:
		case <-ctx.Done():
			return
		}
	}
}

// markStale stores since when the source is stale, unless that has changed; zero if it is not. It reports false if
// that has to be tried again.
func (s *Supervisor) markStale(ctx context.Context, since time.Time) bool {
	done, err := s.mirror.lock(ctx)
	if err != nil {
		return false
	}
	defer done()
	if s.status.staleSince() != since {
		return true
	}
	marked := false
	_, err = editMark(ctx, s.mirror.store, s.mirror.source, func(mark model.SourceMark) model.SourceMark {
		if marked = mark.StaleSince.IsZero() != since.IsZero(); marked {
			mark.StaleSince = since.UTC().Round(0)
		}
		return mark
	})
	if err != nil {
		s.cfg.Log.Warn("the store does not take whether the source has been stale for long: of endpoints that several sources have, the health may be old", "source", s.mirror.source, "err", err)
		return false
	}
	if marked && !since.IsZero() {
		s.cfg.Events.Add(events.Event{Kind: events.State, Source: s.mirror.source, Text: "has been stale for " + s.cfg.Hold.For.String() + ": of endpoints that other sources have too, their health counts"})
	}
	return true
}

// staleSince returns since when the source is stale; zero if it is not.
func (s *status) staleSince() time.Time {
	if now := s.get(); now.State == source.StateStale {
		return now.Since
	}
	return time.Time{}
}
