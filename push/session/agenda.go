package session

import (
	"slices"
	"time"
)

// Few is the number of pending names that a stream keeps room for. Room for more is freed.
const Few = 32

// Pending is why a name is to be considered. The engine fills in the exported fields when a
// resource changes.
type Pending struct {
	Urgent  bool      // as in [world.Changed]
	Revoked bool      // likewise
	Since   time.Time // commit of the oldest change not sent yet; zero if unknown

	// force sends the resource even if the client has it: the client asked again, or NACKed it
	// with others.
	force bool
	// brought sends the resource even if the client has it: the client waits for it together
	// with the resource that brings it. A removal is not sent a second time for that.
	brought bool
	nacked  bool   // a resource that it needs was NACKed, or itself waits for a NACKed one
	step    uint64 // at which it was found gone; 0 if it exists
}

// again reports whether the resource is sent even if the client has it.
func (p Pending) again() bool { return p.force || p.brought }

// And joins two reasons.
func (p Pending) And(o Pending) Pending {
	return Pending{p.Urgent || o.Urgent, p.Revoked || o.Revoked, oldest(p.Since, o.Since), p.force || o.force, p.brought || o.brought, p.nacked, p.step}
}

func oldest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// agenda is the names of a type that are still to be considered, now or after a wait.
type agenda struct {
	fresh   []batch            // long lists of requested names, not yet pending
	pending map[string]Pending // names to consider in a turn
	waits   waits              // names that wait for an obstacle; none of them is pending
	behind  map[string]waiters // waiting names of other types, by the name of this type
	crowded bool               // pending once held many names
	urgent  bool               // a pending name may be urgent
	expand  bool               // the wildcard's names are still to be listed
	// unproven are the names that were not found while some source was not listed yet.
	unproven map[string]struct{}
	roused   *roused // of the stream
}

// batch is a list of names as requested. They become pending a turn's worth at a time,
// because a map of all of them would take several times the memory.
type batch struct {
	names []string
	again bool // sent even if the client has them
}

// want makes a name pending. Names that wait for it are considered again, too: the name may
// no longer exist.
func (a *agenda) want(name string, p Pending) {
	if a.pending == nil {
		a.pending = map[string]Pending{}
	}
	if was, ok := a.pending[name]; ok {
		p = was.And(p)
	} else if w, ok := a.waits.take(name); ok {
		p = w.And(p)
	}
	a.pending[name] = p
	a.urgent = a.urgent || p.Urgent
	a.crowded = a.crowded || len(a.pending) > Few
	a.stir(name)
}

// wantAll queues the names that a request lists.
func (a *agenda) wantAll(b batch) {
	if len(b.names) > Few {
		a.fresh = append(a.fresh, b)
		return
	}
	for _, name := range b.names {
		a.want(name, Pending{force: b.again})
	}
}

// coming returns why a name is to be considered, now or after its wait.
func (a *agenda) coming(name string) (p Pending, ok bool) {
	if p, ok = a.pending[name]; ok {
		return p, true
	}
	w, ok := a.waits.names[name]
	return w.Pending, ok
}

// wait moves a pending name to the waiting ones.
func (a *agenda) wait(name string, w wait) {
	delete(a.pending, name)
	a.waits.put(name, w)
}

// stir makes the names pending that wait for a name of this type.
func (a *agenda) stir(name string) {
	w, ok := a.behind[name]
	if !ok {
		return
	}
	if delete(a.behind, name); len(a.behind) == 0 {
		a.behind = nil
	}
	w.rouse(a.roused)
}

// stirUnlisted stirs all names that are neither pending nor waiting, once every requested
// name has been listed.
func (a *agenda) stirUnlisted() {
	for name := range a.behind {
		if _, coming := a.coming(name); !coming {
			a.stir(name)
		}
	}
}

// waiting returns the number of names to be considered in the next turns.
func (a *agenda) waiting() int {
	n := len(a.pending)
	for _, b := range a.fresh {
		n += len(b.names)
	}
	return n
}

// order lists at most so many pending names for this turn, the urgent ones first.
func (a *agenda) order(most int) (names []string) {
	names = make([]string, 0, min(len(a.pending), most))
	if a.urgent {
		for name, p := range a.pending {
			if p.Urgent && len(names) < most {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	first := len(names)
	for name, p := range a.pending {
		if len(names) == most {
			break
		}
		if !p.Urgent || !a.urgent {
			names = append(names, name)
		}
	}
	slices.Sort(names[first:])
	return names
}

// swap takes marked names as the pending ones, if there is no other pending or waiting name,
// and returns the empty map that held them.
func (a *agenda) swap(names map[string]Pending) (spare map[string]Pending, ok bool) {
	if len(a.pending) > 0 || a.crowded || len(names) > Few || len(a.waits.names) > 0 || len(a.behind) > 0 {
		return nil, false
	}
	a.urgent = false
	for _, p := range names {
		a.urgent = a.urgent || p.Urgent
	}
	spare, a.pending = a.pending, names
	return spare, true
}

// considered updates the agenda after a turn. It frees the room that a burst took once it
// is over: a map never shrinks, and walking an empty one takes as long as walking a full
// one. Otherwise every turn would cost as much as the first one, which sent everything.
func (a *agenda) considered() {
	if a.urgent {
		a.urgent = false
		for _, p := range a.pending {
			a.urgent = a.urgent || p.Urgent
		}
	}
	if a.crowded && len(a.pending) == 0 {
		a.pending, a.crowded = nil, false
	}
}

// unprove records that a name was not found while some source was not listed yet.
func (a *agenda) unprove(name string) {
	delete(a.pending, name)
	if a.unproven == nil {
		a.unproven = map[string]struct{}{}
	}
	a.unproven[name] = struct{}{}
}

// dismiss forgets a name, and stirs the names that wait for it.
func (a *agenda) dismiss(name string) {
	delete(a.pending, name)
	a.waits.take(name)
	delete(a.unproven, name)
	a.stir(name)
}

// send removes a name that a response brings. Until then the name stays unproven: by its
// turn it may exist again.
func (a *agenda) send(name string) {
	delete(a.pending, name)
	delete(a.unproven, name)
}
