package session

import (
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Look is the worlds of all producers, read at once for a stream's turn. A worker has one,
// and fills it in for each turn.
type Look struct {
	*world.Reader
	Types   *world.Types
	Sources []Source // by producer
	Step    uint64   // number of steps made before
	// Marked is the step up to which every change was marked, by type and mode.
	Marked [][world.Modes]uint64
	Now    time.Time

	cache cache
}

// Source is the world of one producer.
type Source struct {
	World world.World // nil before its first world
	// Remembers and Waited are as in [world.Update].
	Remembers, Waited bool
}

// At prepares the look for the worlds after a step.
func (l *Look) At(step uint64) {
	if l.Step != step {
		l.Step = step
		clear(l.cache)
	}
}

// Rest drops the worlds until the next turn: an idle worker keeps no world in memory.
func (l *Look) Rest() {
	clear(l.Sources)
	clear(l.cache)
}

// Source returns the world of a type.
func (l *Look) Source(info *world.Info) Source {
	if info.Producer < 0 {
		return Source{World: world.Nothing{}}
	}
	return l.Sources[info.Producer]
}

// cache is a worker's cache of resolved names in the worlds of its turn. Most streams that a
// change affects have the same view, and their turns directly follow each other. The cache
// keeps few names: to cache a name of a single stream would cost more than the look-up.
type cache map[lookup]finding

type lookup struct {
	view *world.SharedView
	t    world.Type
	name string
	from world.Version // version that the client holds, for a type with increments
}

type finding struct {
	subject world.Subject
	res     *world.Resource
}

// resolve returns the subject of a name in a world, with its encoded form for a client that
// holds some revision. bad reports that the look-up or the encoding panicked.
func (l *Look) resolve(w world.World, row world.Row, at lookup) (f finding, ok, bad bool) {
	if f, ok = l.cache[at]; ok {
		return f, true, false
	}
	f.subject, ok, bad = l.Find(w, at.view.View, row, at.name)
	if bad || !ok {
		return f, false, bad
	}
	if f.res = l.EncodedSince(f.subject, at.name, at.from); f.res == nil {
		return f, false, true
	}
	if l.cache == nil {
		l.cache = cache{}
	}
	if len(l.cache) < Few {
		l.cache[at] = f
	}
	return f, true, false
}

// exists reports whether a name of a state's type exists, as far as that is known.
func (l *Look) exists(s *State, name string) bool {
	info := l.Types.All[s.t]
	w := l.Source(info).World
	if w == nil || s.view == nil {
		return true
	}
	_, found, bad := l.Find(w, s.view.View, info.Row, name)
	return found || bad
}
