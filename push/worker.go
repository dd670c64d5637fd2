package push

import (
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// worker assembles responses, one subscriber at a time.
type worker struct {
	*core
	look session.Look
}

// run serves subscribers until the queue is closed.
func (w *worker) run() {
	for {
		place, ok := w.queue.Take()
		if !ok {
			return
		}
		w.serve(place.Owner)
		w.queue.Done(place)
		if w.queue.Rests() {
			w.look.Rest()
		}
	}
}

// serve runs a subscriber's turn. After a panic the subscriber is ended.
func (w *worker) serve(s *Subscriber) {
	if s.Failed() || !w.reader.Attempt(world.PanicStream, "client "+s.Info.ID, func() { w.advance(s) }) {
		s.failed.Store(true)
		s.Close()
	}
}

// advance sends a subscriber the resources of the current worlds that it lacks, type by
// type, as far as each type may send.
func (w *worker) advance(s *Subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	w.read(s)
	if s.Failed() {
		return // the step just read panicked, so the client's view is unknown; the next turn ends it
	}
	for r := range session.Advance(s.stream, &w.look) {
		w.send(s, r)
	}
	for i := range s.interests {
		w.warn(i)
		w.index.SetMode(&i.Entry, i.state.Mode())
		i.marks.block(i.state.Blocks())
	}
	more, waits := s.stream.Left()
	if more {
		w.queue.Add(&s.place, false) // no answer will come that requests the next turn
	}
	if !waits {
		s.delayed.Store(false)
	}
}

// send hands a response to the stream's goroutine.
func (w *worker) send(s *Subscriber, r *session.Response) {
	info := w.table.Load().types[r.Type]
	if r.Mode == world.WholeState {
		w.reader.Issued.Add(r.Version)
		if !info.Whole {
			for _, res := range r.Resources {
				w.reader.NoteName(&info.TypeSpec, res)
			}
		}
	}
	info.counts.sent(len(r.Resources), r.Bytes)
	select {
	case s.out <- r:
	default:
		s.fail() // the client answered responses that it was not sent, so the outbox is full
	}
}

// warn logs why due resources are not sent.
func (w *worker) warn(i *interest) {
	for _, reason := range i.state.TakeWarnings() {
		if log := w.config.Log; log != nil {
			log.Warn("a client is not sent what it should have", "client", i.subscriber.Info.ID, "type", w.table.Load().types[i.Type].Name, "err", reason)
		}
	}
}

// read looks at the worlds and the names that changed. It runs under the subscriber's lock,
// after requests have been applied: a name that is in the index by now is either found in
// these worlds or marked by the next.
func (w *worker) read(s *Subscriber) {
	w.step.RLock()
	defer w.step.RUnlock()
	table, l := w.table.Load(), &w.look
	l.Reader, l.Types, l.Now = w.reader, table.Types, time.Now()
	l.At(w.steps)
	l.Sources = l.Sources[:0]
	for _, p := range w.producers {
		from := session.Source{Remembers: p.remembers, Waited: p.waited}
		if latest := p.world.Load(); latest != nil {
			from.World = *latest
		}
		l.Sources = append(l.Sources, from)
	}
	s.delayed.Store(table.marked(l))
	if s.review.Swap(false) {
		for i := range s.interests {
			w.review(i)
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

// review gives a subscriber its current view of a type.
func (w *worker) review(i *interest) {
	info := w.look.Types.All[i.Type]
	latest := w.look.Source(info).World
	if latest == nil {
		return // its first world asks for this again
	}
	view := latest.View(info.Row, i.subscriber.client)
	if i.View() != nil && i.View().View == view {
		return
	}
	w.index.SetView(&i.Entry, view)
	i.state.SetView(&i.View().SharedView)
}
