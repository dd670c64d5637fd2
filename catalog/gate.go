package catalog

import (
	"slices"
	"sync"
	"time"
)

// Gate holds snapshots back until they may be served, so that no subscriber ever mistakes a
// half-read registry for the complete one. Every required source must be primed. The others
// are waited for, for a limited time.
type Gate struct {
	next func(s *Snapshot, c Change, complete bool)

	mu                 sync.Mutex
	required, optional []string

	newest   *Snapshot
	read     bool // newest is of the store
	held     Change
	open     bool
	notified known // the state that was published last
	wait     time.Duration
	waited   bool // the wait for optional sources is over
	timer    *time.Timer
	stopped  bool
	passing  bool // next is running, and later changes pass after it
}

// known is the state of the sources as published: every one is primed, or was waited for.
type known struct{ complete, waited bool }

// passage is a snapshot and change that pass a gate together.
type passage struct {
	snapshot *Snapshot
	change   Change
	complete bool
}

// NewGate returns a gate that passes snapshots to next, one at a time. complete tells next
// whether every source is primed: a service that the snapshot lacks is then known not to
// exist. Sources that are not required are waited for no longer than wait.
func NewGate(required, optional []string, wait time.Duration, next func(s *Snapshot, c Change, complete bool)) *Gate {
	g := &Gate{required: required, optional: optional, next: next, newest: Empty(), wait: wait}
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

// Publish takes the next snapshot. Held back changes pass on as one change.
func (g *Gate) Publish(s *Snapshot, c Change) {
	g.update(func() { g.newest, g.read, g.held = s, true, g.held.Then(c) })
}

// Require replaces the sources that are waited for. An open gate stays open: a new source
// does not stop serving. Whether every source is primed is published again when that
// changes. Optional sources added while the gate is open are waited for as long as the
// sources at the start. Until then, full sets are held back from clients that may have
// their resources.
func (g *Gate) Require(required, optional []string) {
	g.update(func() {
		before := slices.Concat(g.required, g.optional)
		comes := slices.ContainsFunc(optional, func(name string) bool { return !slices.Contains(before, name) && !g.newest.Primed(name) })
		g.required, g.optional = required, optional
		if comes && g.open && !g.stopped {
			g.waited = false
			g.timer.Reset(g.wait)
		}
	})
}

// Missing names the sources that are being waited for. None means that the gate is open, or
// will be with the next snapshot.
func (g *Gate) Missing() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return nil
	}
	return g.missing()
}

// Snapshot returns the newest snapshot, whether or not it may be served.
func (g *Gate) Snapshot() *Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newest
}

func (g *Gate) missing() []string {
	missing := g.newest.unprimed(g.required)
	if !g.waited {
		missing = append(missing, g.newest.unprimed(g.optional)...)
	}
	return missing
}

// update changes the gate and passes snapshots on. The lock is not held meanwhile. A
// concurrent update leaves the rest to the call that is already passing them on. So next is
// called once at a time and in order.
func (g *Gate) update(change func()) {
	g.mu.Lock()
	change()
	g.mu.Unlock()
	for {
		p, ok := g.take()
		if !ok {
			return
		}
		g.let(p)
	}
}

func (g *Gate) let(p passage) {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.passing = false
	}()
	g.next(p.snapshot, p.change, p.complete)
}

// take returns the passage that is due. Once open, the gate stays open: a source that fails
// later keeps its stored records.
func (g *Gate) take() (p passage, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passing || g.stopped || !g.read || !g.open && len(g.missing()) > 0 {
		return passage{}, false
	}
	complete := len(g.newest.unprimed(slices.Concat(g.required, g.optional))) == 0
	now := known{complete, complete || len(g.missing()) == 0}
	if g.open && g.held.Empty() && now == g.notified {
		return passage{}, false
	}
	p = passage{g.newest, g.held, complete}
	p.change.Waited = now.waited
	g.held, g.open, g.notified, g.passing = Change{}, true, now, true
	return p, true
}
