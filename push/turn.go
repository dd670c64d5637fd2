package push

import (
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
)

// advance sends the subscriber the resources of the current worlds that it lacks, type by
// type, as far as each type may send.
func (s *Subscriber) advance(l *session.Look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.look(l)
	if s.Failed() {
		return // the step just read panicked, so the client's view is unknown; the next turn ends it
	}
	for r := range session.Advance(s.stream, l) {
		s.send(r)
	}
	for i := range s.interests {
		s.warn(i)
		s.engine.index.setMode(i, i.state.Mode())
		i.marks.block(i.state.Blocks())
	}
	more, waits := s.stream.Left()
	if more {
		s.engine.queue.add(s, false) // no answer will come that requests the next turn
	}
	if !waits {
		s.delayed.Store(false)
	}
}

// send hands a response to the stream's goroutine.
func (s *Subscriber) send(r *Response) {
	e := s.engine
	info := e.table.Load().types[r.Type]
	if r.Mode == WholeState {
		e.reader.Issued.Add(r.Version)
		if !info.Whole {
			for _, res := range r.Resources {
				e.reader.NoteName(&info.TypeSpec, res)
			}
		}
	}
	info.counts.sent(len(r.Resources), r.Bytes)
	select {
	case s.out <- r:
	default:
		e.fail(s) // the client answered responses that it was not sent, so the outbox is full
	}
}

// warn logs why due resources are not sent.
func (s *Subscriber) warn(i *interest) {
	for _, reason := range i.state.TakeWarnings() {
		if log := s.engine.config.Log; log != nil {
			log.Warn("a client is not sent what it should have", "client", s.Info.ID, "type", s.engine.TypeName(i.t), "err", reason)
		}
	}
}

// look reads the worlds and the names that changed. It runs under the subscriber's lock,
// after requests have been applied: a name that is in the index by now is either found in
// these worlds or marked by the next.
func (s *Subscriber) look(l *session.Look) {
	e := s.engine
	e.step.RLock()
	defer e.step.RUnlock()
	table := e.table.Load()
	l.Reader, l.Types, l.Now = e.reader, table.Types, time.Now()
	l.At(e.steps)
	l.Sources = l.Sources[:0]
	for _, p := range e.producers {
		from := session.Source{Remembers: p.remembers, Waited: p.waited}
		if w := p.world.Load(); w != nil {
			from.World = *w
		}
		l.Sources = append(l.Sources, from)
	}
	s.delayed.Store(table.lookAtLanes(l))
	if s.review.Swap(false) {
		for i := range s.interests {
			s.reviewed(l, i)
		}
	}
	recheck := s.recheck.Swap(false)
	for i := range s.interests {
		i.marks.move(i.state)
		if recheck {
			i.state.Recheck()
		}
	}
}

// lookAtLanes computes the step up to which the changes of each type were marked. It
// reports whether some changes still wait for a debounce. The engine's step is held.
func (b *table) lookAtLanes(l *session.Look) (some bool) {
	l.Marked = l.Marked[:0]
	for _, info := range b.types {
		marked := [modes]uint64{l.Step, l.Step}
		for m := range modes {
			for lane := range info.lanesOf(m) {
				if lane.step > 0 {
					marked[m], some = min(marked[m], lane.step-1), true
				}
			}
		}
		l.Marked = append(l.Marked, marked)
	}
	return some
}

// reviewed gives the subscriber its current view of a type.
func (s *Subscriber) reviewed(l *session.Look, i *interest) {
	info := l.Types.All[i.t]
	w := l.Source(info).World
	if w == nil {
		return // its first world asks for this again
	}
	view := w.View(info.Row, s.client)
	if i.view != nil && i.view.View == view {
		return
	}
	s.engine.index.setView(i, view)
	i.state.SetView(&i.view.SharedView)
}
