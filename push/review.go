package push

import (
	"maps"
	"slices"
)

// reviewAll has subscribers find out what they see, where a step may have
// changed that. Only those of the namespaces concerned are asked.
func (e *Engine) reviewAll(old, now World, namespaces []string) {
	if len(namespaces) == 0 {
		return
	}
	everyone := slices.Contains(namespaces, "*")
	for s := range e.all() {
		if !everyone && !slices.Contains(namespaces, s.client.Namespace) {
			continue
		}
		sees := true
		if !e.panics.attempt(PanicStream, "client "+s.Info.ID, func() { sees = old.View(s.client) != now.View(s.client) }) {
			e.fail(s)
			continue
		}
		if sees {
			s.marks.review.Store(true)
			e.queue.add(s, false)
		}
	}
}

// review takes over what the client sees in a world, if that was asked for. It
// is called while no step can be made. Everything the subscriber asked for and
// everything it holds is looked at again, and so reaches it as additions and
// removals in the usual order.
func (s *Subscriber) review(w World) {
	if !s.marks.review.Swap(false) {
		return
	}
	view := w.View(s.client)
	if view == s.view {
		return
	}
	for t := range s.types {
		s.engine.index.remove(s, Type(t), maps.Keys(s.types[t].names))
		s.engine.index.setWildcard(s, Type(t), false)
	}
	s.view = view
	for t := range s.types {
		st := &s.types[t]
		s.engine.index.add(s, Type(t), maps.Keys(st.names))
		s.engine.index.setWildcard(s, Type(t), st.wildcard)
		st.expand = st.wildcard
		for name := range st.names {
			st.want(name, pending{})
		}
		for name := range st.held {
			st.want(name, pending{})
		}
	}
}
