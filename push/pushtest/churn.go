package pushtest

import (
	"runtime"
	"testing/synctest"
	"weak"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
)

// late is how many answers of the client a removal may take while everything else
// changes: one for what is on its way, one for what refers to it, and the same
// for a type that refers to that.
const late = 8

// churn has the worlds change before each answer. A removal waits for what was
// sent when it became due, and not for all that follows.
func (h *history) churn() {
	for range rapid.IntRange(0, 15).Draw(h.t, "rounds of churn") {
		for _, m := range h.added {
			m.publish()
		}
		synctest.Wait()
		for _, s := range h.sinks {
			s.turn()
		}
		for _, c := range h.clients {
			if c.sub == nil || c.busy || c.silent {
				continue
			}
			c.turn()
			if h.calm && len(c.bad) == 0 && c.sub != nil && !c.guarded() {
				c.countLate()
			}
		}
	}
}

// countLate counts the answers for which a client has had what is gone.
func (c *client) countLate() {
	for _, s := range c.types {
		for name, x := range s.held {
			_, there := s.now().names[name]
			if there || s.wasUnclear(name) || s.mode == push.WholeState && !s.full || s.emptied(x) || !s.maker.complete && !s.proven(x) {
				delete(s.missing, name)
				continue
			}
			if s.missing[name]++; s.missing[name] > late {
				s.violated(lost, "%s is gone and was not removed in %d answers, while other things change", name, late)
			}
		}
	}
}

// leave has all clients go, and holds that nothing of them is kept.
func (h *history) leave() {
	var gone []weak.Pointer[push.Subscriber]
	for _, s := range h.sinks {
		if s.sub != nil {
			gone = append(gone, weak.Make(s.sub))
			s.leave()
		}
	}
	for _, c := range h.clients {
		if c.sub != nil {
			gone = append(gone, weak.Make(c.sub))
			c.leave()
		}
	}
	h.clients = nil
	synctest.Wait()
	if n := h.engine.Len(); n != 0 {
		h.violated(bounded, "%d subscribers are kept after all have left", n)
	}
	runtime.GC()
	for _, p := range gone {
		if p.Value() != nil {
			h.violated(bounded, "a subscriber that has left is still reachable")
		}
	}
	for _, m := range h.makers {
		h.countWorlds(m)
	}
}

// countWorlds holds that old worlds are let go: the newest is kept, and what each
// worker and the dispatcher looked at last.
func (h *history) countWorlds(m *maker) {
	kept := 0
	for _, p := range m.stages {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > h.workers+2 {
		h.violated(bounded, "%d of %d worlds are kept by %d workers", kept, len(m.stages), h.workers)
	}
}
