package push

import (
	"slices"
	"sync"
	"time"
)

// inbox holds the step from the world last dispatched to the newest. It never
// grows beyond the names there are, however slow the dispatcher is.
type inbox struct {
	wake chan struct{} // holds a token while something waits

	mu      sync.Mutex
	pending *Update // without Changed
	changed map[resourceName]change
}

// change is what is known of a changed resource, as in [Changed].
type change struct {
	namespaces []string
	urgent     bool
}

func newInbox() inbox {
	return inbox{wake: make(chan struct{}, 1), changed: map[resourceName]change{}}
}

// put joins an update with those that wait. What each of them names stays
// apart: nothing is marked that none of them named.
func (b *inbox) put(u Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = &Update{Committed: u.Committed}
	}
	b.pending.World = u.World
	b.pending.Reviewed = both(b.pending.Reviewed, u.Reviewed)
	b.pending.Committed = oldest(b.pending.Committed, u.Committed)
	for _, c := range u.Changed {
		key := resourceName{c.Type, c.Name}
		joined := change{c.Namespaces, c.Urgent}
		if before, ok := b.changed[key]; ok {
			joined = change{union(before.namespaces, c.Namespaces), before.urgent || c.Urgent}
		}
		b.changed[key] = joined
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// changes is how many resources the waiting step names.
func (b *inbox) changes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.changed)
}

// take returns the waiting step, what is urgent first; ok is false when there
// is none.
func (b *inbox) take() (u Update, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		return Update{}, false
	}
	u, b.pending = *b.pending, nil
	u.Changed = make([]Changed, 0, len(b.changed))
	for _, urgent := range []bool{true, false} {
		for key, c := range b.changed {
			if c.urgent == urgent {
				u.Changed = append(u.Changed, Changed{key.Type, key.name, c.namespaces, c.urgent})
			}
		}
	}
	b.changed = map[resourceName]change{}
	return u, true
}

// union joins two sets of namespaces, where nil is the set of all.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	return both(a, b)
}

// both joins two sets of namespaces.
func both(a, b []string) []string {
	joined := slices.Concat(a, b)
	slices.Sort(joined)
	return slices.Compact(joined)
}

func oldest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
