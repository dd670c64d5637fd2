// Package gate delays the snapshots of the catalog until they may be served.
package gate

import (
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// Gate delays snapshots until they may be served, so that no subscriber takes a half-read
// registry for a complete one. Every required source must be primed. The wait for optional
// sources is limited. The gate delivers snapshots one at a time, in order, without its lock.
type Gate struct {
	next func(s *catalog.Snapshot, c catalog.Change, complete bool)

	mu                 sync.Mutex
	required, optional []string

	newest   *catalog.Snapshot
	stored   bool           // newest comes from the store
	pending  catalog.Change // since the last delivery
	open     bool
	notified waitState // of the last delivery
	wait     time.Duration
	waited   bool // the wait for optional sources has ended
	timer    *time.Timer
	stopped  bool
	running  bool // next is running
}

// waitState tells whether every source is primed, and whether the wait for all of them has
// ended.
type waitState struct{ complete, waited bool }

// delivery is one call of next.
type delivery struct {
	snapshot *catalog.Snapshot
	change   catalog.Change
	complete bool
}

// New returns a gate that delivers snapshots to next. complete means that every source
// is primed, so a service that the snapshot lacks does not exist. wait limits the wait for
// optional sources.
func New(required, optional []string, wait time.Duration, next func(s *catalog.Snapshot, c catalog.Change, complete bool)) *Gate {
	g := &Gate{required: required, optional: optional, next: next, newest: catalog.Empty(), wait: wait}
	g.timer = time.AfterFunc(wait, func() {
		g.update(func() { g.waited = true })
	})
	return g
}

// Stop ends the wait of a gate that is no longer needed.
func (g *Gate) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.timer.Stop()
}

// Publish takes the next snapshot. Delayed changes are delivered as one.
func (g *Gate) Publish(s *catalog.Snapshot, c catalog.Change) {
	g.update(func() { g.newest, g.stored, g.pending = s, true, g.pending.Then(c) })
}

// Require replaces the required and optional sources. An open gate stays open: a new source
// does not stop serving. But an added optional source restarts the wait: [catalog.Change].Waited is
// false until the source is primed or the wait ends. The newest snapshot is delivered again
// when its wait state changes.
func (g *Gate) Require(required, optional []string) {
	g.update(func() {
		before := slices.Concat(g.required, g.optional)
		added := slices.ContainsFunc(optional, func(name string) bool { return !slices.Contains(before, name) && !g.newest.Primed(name) })
		g.required, g.optional = required, optional
		if added && g.open && !g.stopped {
			g.waited = false
			g.timer.Reset(g.wait)
		}
	})
}

// Missing names the sources that keep the gate closed. If there is none, the gate is open,
// or opens with the next snapshot.
func (g *Gate) Missing() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return nil
	}
	return g.missing()
}

// Snapshot returns the newest snapshot, whether or not it may be served.
func (g *Gate) Snapshot() *catalog.Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newest
}

func (g *Gate) missing() []string {
	missing := unprimed(g.newest, g.required)
	if !g.waited {
		missing = append(missing, unprimed(g.newest, g.optional)...)
	}
	return missing
}

// update changes the gate, and then delivers until nothing is due. A concurrent update leaves
// the delivery to the call that is already delivering. So next is called one at a time and
// in order.
func (g *Gate) update(change func()) {
	g.mu.Lock()
	change()
	g.mu.Unlock()
	for {
		d, ok := g.take()
		if !ok {
			return
		}
		g.deliver(d)
	}
}

func (g *Gate) deliver(d delivery) {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running = false
	}()
	g.next(d.snapshot, d.change, d.complete)
}

// take returns the delivery that is due. Once open, the gate stays open: a source that fails
// later keeps its stored records.
func (g *Gate) take() (d delivery, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running || g.stopped || !g.stored || !g.open && len(g.missing()) > 0 {
		return delivery{}, false
	}
	complete := len(unprimed(g.newest, slices.Concat(g.required, g.optional))) == 0
	now := waitState{complete, complete || len(g.missing()) == 0}
	if g.open && g.pending.Empty() && now == g.notified {
		return delivery{}, false
	}
	d = delivery{g.newest, g.pending, complete}
	d.change.Waited = now.waited
	g.pending, g.open, g.notified, g.running = catalog.Change{}, true, now, true
	return d, true
}

func unprimed(s *catalog.Snapshot, sources []string) []string {
	return slices.DeleteFunc(slices.Clone(sources), s.Primed)
}
