package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// position is a place between two commits, where a watcher stands. All
// watchers at the newest position wait for the same channel.
type position struct {
	at    model.At             // the moment after the commit before it
	ready chan struct{}        // closed once next is set
	next  atomic.Pointer[step] // what leads on; the history replaces it when it forgets
}

func newPosition(at model.At) *position { return &position{at: at, ready: make(chan struct{})} }

// wait returns the step that leads on from p, as soon as there is one.
func (p *position) wait(ctx context.Context) (*step, error) {
	// Cases: the reader went away; the next commit was made.
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ready:
		return p.next.Load(), nil
	}
}

// step leads from one position to the next: one commit as watchers are notified of it.
type step struct {
	revision            uint64
	observed, committed time.Time
	notice              []notice
	after               *position // nil if the step is forgotten
	lost                string    // why it is forgotten
}

// notice is an event, and the record it is about beside it: a filter then need
// not unpack the event, and watchers share one copy of it.
type notice struct {
	about *model.Record
	event model.Event
}

func (s *step) forgotten() bool { return s.after == nil }

// batch returns what f selects of the step. Its events are the reader's own.
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
			out[i] = notice{c.after, model.Upsert{Record: *c.after}}
		}
	}
	return out
}

// history is the commits kept for watchers that lag: a chain of steps from the
// oldest position that still leads on to the newest. Watchers walk the chain
// without a lock; only a commit changes it.
//
// To forget a step is to cut it off from the position before it. A watcher
// that stands there then holds nothing but its position, however long it
// stays, and learns by the cut that it must start anew.
type history struct {
	bound  int // most events kept
	events int // events kept
	oldest atomic.Pointer[position]
	newest *position
}

func newHistory(start *position, bound int) *history {
	h := &history{bound: bound, newest: start}
	h.oldest.Store(start)
	return h
}

func (h *history) lagged() string {
	return fmt.Sprintf("the reader lagged more than %d events behind", h.bound)
}

// gone says why nothing leads on from a revision that lies before all steps.
func (h *history) gone(revision uint64) string {
	return fmt.Sprintf("what came after revision %d is not kept any more: the reader was more than %d events behind, or everything was replaced since",
		revision, h.bound)
}

// append adds a step with its changes and forgets as many of the oldest as
// that takes. A step larger than the bound is forgotten at once, and is never
// seen by anyone. Watchers wake last, when all is in place.
func (h *history) append(s *step, changes []change) {
	at := h.newest
	h.newest = s.after
	for h.oldest.Load() != at && h.events+len(changes) > h.bound {
		h.forgetOldest(h.lagged())
	}
	if len(changes) > h.bound {
		at.next.Store(&step{lost: h.lagged()})
		h.oldest.Store(s.after)
	} else {
		s.notice = notices(changes, s.revision)
		h.events += len(s.notice)
		at.next.Store(s)
	}
	close(at.ready)
}

func (h *history) forgetOldest(why string) {
	oldest := h.oldest.Load()
	first := oldest.next.Load()
	h.events -= len(first.notice)
	oldest.next.Store(&step{lost: why})
	h.oldest.Store(first.after)
}

// restart forgets everything. Every watcher, wherever it stands, starts anew,
// and learns why.
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
