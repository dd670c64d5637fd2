package push

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// turn is one subscriber's batch of work with a worker. It has the worlds of all producers,
// read at once.
type turn struct {
	table  *table
	worlds []World // by producer; nil before its first world
	whole  []bool  // by producer: [Update.Remembers] of its world
	free   []bool  // by producer: [Update.Waited] of its world
	step   uint64
	memo   memo
	marked [][modes]uint64 // by type: the step up to which every change was marked
}

// world returns the world of a type; nil if its producer has published nothing yet.
func (t *turn) world(e *Engine, info *typeInfo) World {
	if info.producer == nil {
		return world.Nothing{}
	}
	return t.worlds[slices.Index(e.producers, info.producer)]
}

// remembers reports whether the world of a type contains all that was ever sent.
func (t *turn) remembers(e *Engine, info *typeInfo) bool {
	return info.producer != nil && t.whole[slices.Index(e.producers, info.producer)]
}

// waited reports whether the sources of a type's world were waited for long enough.
func (t *turn) waited(e *Engine, info *typeInfo) bool {
	return info.producer != nil && t.free[slices.Index(e.producers, info.producer)]
}

// advance sends the subscriber the resources of the current worlds that it lacks, type by
// type, as far as each type may send.
func (s *Subscriber) advance(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.look(t)
	if s.Failed() {
		return // the step just read panicked, so the client's view is unknown; the next turn ends it
	}
	for _, typ := range t.table.Order {
		s.assemble(t, typ)
	}
	// Once more: later types have brought names, or have sent the resources that removals of
	// earlier types waited for.
	for _, typ := range t.table.Order {
		if i := s.interest(typ); i != nil && i.waiting() > 0 {
			s.assemble(t, typ)
		}
	}
	more, waits := false, false
	for i := range s.interests {
		more = more || i.ready()
		waits = waits || i.waiting() > 0 || len(i.waits.names) > 0
		i.block()
	}
	if more {
		s.engine.queue.add(s, false) // no answer will come that requests the next turn
	}
	if !waits {
		s.delayed.Store(false)
	}
}

// look reads the worlds and the names that changed. It runs under the subscriber's lock,
// after requests have been applied: a name that is in the index by now is either found in
// these worlds or marked by the next.
func (s *Subscriber) look(t *turn) {
	e := s.engine
	e.step.RLock()
	defer e.step.RUnlock()
	t.table, t.step = e.table.Load(), e.steps
	t.memo.at(t.step)
	t.worlds, t.whole, t.free = t.worlds[:0], t.whole[:0], t.free[:0]
	for _, p := range e.producers {
		t.whole, t.free = append(t.whole, p.remembers), append(t.free, p.waited)
		if w := p.world.Load(); w != nil {
			t.worlds = append(t.worlds, *w)
		} else {
			t.worlds = append(t.worlds, nil)
		}
	}
	s.delayed.Store(t.lookAtLanes())
	if s.review.Swap(false) {
		for i := range s.interests {
			s.reviewed(t, i)
		}
	}
	recheck := s.recheck.Swap(false)
	for i := range s.interests {
		i.takeMarks()
		if recheck {
			i.recheck()
		}
	}
}

// lookAtLanes computes the step up to which the changes of each type were marked. It
// reports whether some changes still wait for a debounce. The engine's step is held.
func (t *turn) lookAtLanes() (some bool) {
	t.marked = t.marked[:0]
	for _, info := range t.table.types {
		marked := [modes]uint64{t.step, t.step}
		for m := range modes {
			for l := range info.lanesOf(m) {
				if l.step > 0 {
					marked[m], some = min(marked[m], l.step-1), true
				}
			}
		}
		t.marked = append(t.marked, marked)
	}
	return some
}

// reviewed gives the subscriber its current view of a type. Every name that it asked for or
// holds is considered again, and so reaches it as an addition or removal in the usual
// order.
func (s *Subscriber) reviewed(t *turn, i *interest) {
	info := t.table.types[i.t]
	w := t.world(s.engine, info)
	if w == nil {
		return // its first world asks for this again
	}
	view := w.View(info.Row, s.client)
	if i.view != nil && i.view.View == view {
		return
	}
	first := i.view == nil
	s.engine.index.setView(i, view)
	if first {
		return // everything is pending in any case
	}
	i.expand = i.wildcard
	for name := range i.waits.names {
		i.want(name, pending{})
	}
	for name := range i.allNamed {
		i.want(name, pending{})
	}
	for h := range i.held.all {
		i.want(h.Name, pending{})
	}
}

// recheck considers names again that were not found while some source had not been listed.
func (i *interest) recheck() {
	for name := range i.unproven {
		i.want(name, pending{force: i.holding(name) == nil}) // a client without the resource waits for an answer
	}
	i.unproven = nil
}
