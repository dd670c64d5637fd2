package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// position is a place between two commits, where a watcher waits. All watchers at the
// newest position wait for the same channel.
type position struct {
	at    model.At             // the moment after the commit before it
	ready chan struct{}        // closed once next is set
	next  atomic.Pointer[step] // the following step; the history replaces it to forget it
}

func newPosition(at model.At) *position { return &position{at: at, ready: make(chan struct{})} }

// wait returns the step that follows p, as soon as there is one.
func (p *position) wait(ctx context.Context) (*step, error) {
	// Cases: the reader left; the next commit was made.
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ready:
		return p.next.Load(), nil
	}
}

// step leads from one position to the next: one commit, as the events that watchers
// receive.
type step struct {
	revision            uint64
	observed, committed time.Time
	notice              []notice
	bytes               int       // estimated, of the notices
	after               *position // nil if the step is forgotten
	lost                string    // why it is forgotten
}

// notice is an event with its record beside it: a filter then need not unpack the
// event, and watchers share one copy of it.
type notice struct {
	about *model.Record
	event model.Event
}

func (s *step) forgotten() bool { return s.after == nil }

// batch returns the events of the step that f selects. The reader owns the batch.
func (s *step) batch(f model.Filter) model.Batch {
	b := model.Batch{Observed: s.observed, Committed: s.committed}
	for _, t := range s.notice {
		if f.Matches(t.about.Ref) {
			b.Events = append(b.Events, t.event)
		}
	}
	return b
}

func notices(changes []change, revision uint64) []notice {
	out := make([]notice, len(changes))
	for i, c := range changes {
		if c.after == nil {
			out[i] = notice{c.before, model.Delete{Record: *c.before, Revision: revision}}
		} else {
			out[i] = notice{c.after, model.Upsert{Record: *c.after, Before: c.before}}
		}
	}
	return out
}

// eventBytes is an estimate of the memory of an event without its record.
const eventBytes = 384

// sizeOf estimates the memory of the notices of changes. A replaced record usually was the new
// one of another notice, so it counts once.
func sizeOf(changes []change) (bytes int) {
	for _, c := range changes {
		about := c.after
		if about == nil {
			about = c.before
		}
		bytes += eventBytes + about.Size()
	}
	return bytes
}

// history holds the commits kept for watchers that lag. They form a chain of steps
// from the oldest kept position to the newest. Watchers walk the chain without a lock;
// only a commit changes it.
//
// Forgetting a step cuts it off from the position before it. A watcher at that
// position then holds nothing but its position, however long it stays. The cut tells
// it that it must start anew.
type history struct {
	bound  Config // the limits on kept events and bytes
	events int    // kept
	bytes  int    // estimated, of the kept events
	oldest atomic.Pointer[position]
	newest *position
}

func newHistory(start *position, bound Config) *history {
	h := &history{bound: bound, newest: start}
	h.oldest.Store(start)
	return h
}

func (h *history) lagged() string {
	return fmt.Sprintf("the reader lagged more than %d events or %d bytes behind", h.bound.History, h.bound.HistoryBytes)
}

// gone explains that a revision is older than all kept steps.
func (h *history) gone(revision uint64) string {
	return fmt.Sprintf("what came after revision %d is not kept any more: the reader was more than %d events or %d bytes behind, or everything was replaced since",
		revision, h.bound.History, h.bound.HistoryBytes)
}

// append adds a step with its changes and forgets as many of the oldest steps as that
// takes. A step larger than the bound is forgotten at once, and no watcher sees it.
// Watchers wake last, after all fields are set.
func (h *history) append(s *step, changes []change) {
	at := h.newest
	h.newest = s.after
	bytes := sizeOf(changes)
	exceeds := func(events, size int) bool { return events > h.bound.History || size > h.bound.HistoryBytes }
	for h.oldest.Load() != at && exceeds(h.events+len(changes), h.bytes+bytes) {
		h.forgetOldest(h.lagged())
	}
	if exceeds(len(changes), bytes) {
		at.next.Store(&step{lost: h.lagged()})
		h.oldest.Store(s.after)
	} else {
		s.notice, s.bytes = notices(changes, s.revision), bytes
		h.events += len(s.notice)
		h.bytes += s.bytes
		at.next.Store(s)
	}
	close(at.ready)
}

func (h *history) forgetOldest(why string) {
	oldest := h.oldest.Load()
	first := oldest.next.Load()
	h.events -= len(first.notice)
	h.bytes -= first.bytes
	oldest.next.Store(&step{lost: why})
	h.oldest.Store(first.after)
}

// restart forgets everything. Every watcher, at whichever position, starts anew and
// gets the reason.
func (h *history) restart(start *position, why string) {
	for h.oldest.Load() != h.newest {
		h.forgetOldest(why)
	}
	end := h.newest
	h.newest = start
	h.oldest.Store(start)
	end.next.Store(&step{lost: why})
	close(end.ready)
}
