package push

import (
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// inbox holds the step from a producer's world last dispatched to its newest. It never
// grows beyond the number of names, however slow the dispatcher is.
type inbox struct {
	mu      sync.Mutex
	pending *world.Update // without Changed
	changed map[rowName]change
}

type rowName struct {
	world.Row
	name string
}

// change describes a changed resource, as in [world.Changed].
type change struct {
	audience        []string
	urgent, revoked bool
	again           bool // changed more than once during a debounce
}

// and joins two changes of one resource.
func (c change) and(o change) change {
	return change{union(c.audience, o.audience), c.urgent || o.urgent, c.revoked || o.revoked, c.again || o.again}
}

func newInbox() inbox { return inbox{changed: map[rowName]change{}} }

// put joins an update with the waiting ones. Each name keeps its own audience, so only
// names of an update are marked.
func (b *inbox) put(u world.Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = &world.Update{Committed: u.Committed}
	}
	b.pending.World, b.pending.Remembers, b.pending.Waited = u.World, u.Remembers, u.Waited
	b.pending.Reviewed = both(b.pending.Reviewed, u.Reviewed)
	b.pending.Committed = oldest(b.pending.Committed, u.Committed)
	for _, c := range u.Changed {
		key, now := rowName{c.Row, c.Name}, change{audience: c.Audience, urgent: c.Urgent, revoked: c.Revoked}
		if before, ok := b.changed[key]; ok {
			now = before.and(now)
		}
		b.changed[key] = now
	}
}

// take returns the waiting step, urgent changes first; ok is false when there is none.
func (b *inbox) take() (u world.Update, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		return world.Update{}, false
	}
	u, b.pending = *b.pending, nil
	u.Changed = make([]world.Changed, 0, len(b.changed))
	for _, urgent := range []bool{true, false} {
		for key, c := range b.changed {
			if c.urgent == urgent {
				u.Changed = append(u.Changed, world.Changed{Row: key.Row, Name: key.name, Audience: c.audience, Urgent: c.urgent, Revoked: c.revoked})
			}
		}
	}
	b.changed = map[rowName]change{}
	return u, true
}

// union joins two sets of audience keys, where nil is the set of all.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	return both(a, b)
}

// both joins two sets of audience keys.
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
