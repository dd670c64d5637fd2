package pushtest

import (
	"runtime"
	"slices"
	"testing/synctest"
	"weak"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// late bounds the answers of the client that a removal may take while everything else
// changes: one for a response in flight and one for resources that refer to it. The rest is
// for further types that refer to those types.
const late = 8

// churn makes the worlds change before each answer. A removal waits for the responses sent
// when it became due, and not for later ones.
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

// countLate counts the answers during which a client has kept a removed resource.
func (c *client) countLate() {
	for _, s := range c.types {
		for name, x := range s.held {
			_, there := s.now().names[name]
			if there || s.wasUnclear(name) || s.mode == world.WholeState && !s.full || s.emptied(x) || !s.maker.complete && !s.proven(x) {
				delete(s.missing, name)
				continue
			}
			if s.missing[name]++; s.missing[name] > late {
				s.violated(lost, "%s is gone and was not removed in %d answers, while other things change", name, late)
			}
		}
	}
}

// leave disconnects all clients, and checks that no subscriber of theirs is kept.
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
	if !collected(func() bool {
		return !slices.ContainsFunc(gone, func(p weak.Pointer[push.Subscriber]) bool { return p.Value() != nil })
	}) {
		h.violated(bounded, "a subscriber that has left is still reachable")
	}
	for _, m := range h.makers {
		h.countWorlds(m)
	}
}

// collections is how often garbage is collected before an object counts as reachable. The
// stack of a goroutine that was preempted is scanned conservatively, so that a single
// collection may keep an object for a value that merely looks like its address.
const collections = 20

// collected collects garbage until a condition holds, and reports whether it does.
func collected(holds func() bool) bool {
	for range collections {
		runtime.GC()
		if holds() {
			return true
		}
	}
	return false
}

// countWorlds checks that old worlds are released. Kept are the newest, and the last one of
// each worker and of the dispatcher.
func (h *history) countWorlds(m *maker) {
	kept := 0
	if !collected(func() bool {
		kept = 0
		for _, p := range m.stages {
			if p.Value() != nil {
				kept++
			}
		}
		return kept <= h.workers+2
	}) {
		h.violated(bounded, "%d of %d worlds are kept by %d workers", kept, len(m.stages), h.workers)
	}
}
