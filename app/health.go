package app

import (
	"fmt"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog/gate"
)

// missing lists the obstacles to readiness.
func (a *App) missing() []admin.Obstacle {
	if a.stopping.Load() {
		return []admin.Obstacle{{Reason: "this Isthmus is stopping"}}
	}
	var list []admin.Obstacle
	missing := a.branches[0].gate.Missing()
	if fault := a.faults.lasting(part{where: panicMerge}); fault != "" && len(missing) > 0 {
		list = append(list, admin.Obstacle{Reason: fmt.Sprintf("catalog: merging the sources panics and is tried again: %s; please report it with the log", fault)})
	}
	for _, name := range missing {
		reason := "no complete listing yet"
		for _, s := range a.fleet.supervisors() {
			if status := s.Status(); status.Name == name && status.Reason != "" {
				reason = status.Reason
			}
		}
		list = append(list, admin.Obstacle{Source: name, Reason: reason})
	}
	return list
}

// stuckAfter is how long the catalog may lag behind the store before the
// process counts as stuck. A full rebuild of millions of endpoints is quicker.
const stuckAfter = time.Minute

// watchdog checks that the data path makes progress: that the catalog follows the store.
type watchdog struct {
	gate   *gate.Gate // of all sources
	store  Records
	faults *faults

	mu    sync.Mutex
	seen  uint64    // catalog revision
	since time.Time // since when seen has not changed although the store is ahead
}

func newWatchdog(p parts) *watchdog {
	return &watchdog{gate: p.branches[0].gate, store: p.store, faults: p.faults, since: time.Now()}
}

// stuck explains why the process makes no progress; empty if it does.
func (w *watchdog) stuck() string {
	behind, ahead := w.gate.Snapshot().Revision, w.store.Revision()
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if behind >= ahead || behind != w.seen {
		w.seen, w.since = behind, now
		return ""
	}
	if w.faults.lasting(part{where: panicMerge}) != "" {
		return "" // merging is retried, and another process would panic as well and serve nothing
	}
	if standing := now.Sub(w.since); standing > stuckAfter {
		return fmt.Sprintf("the catalog has been at revision %d for %s, the store is at %d; restart this process and report its goroutines",
			behind, standing.Round(time.Second), ahead)
	}
	return ""
}
