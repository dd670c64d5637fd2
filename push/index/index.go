// Package index finds the streams that a change concerns: those that subscribed to a name,
// and those that an audience key reaches. An [Entry] is one stream's interest in one type.
// The index knows nothing of its owner. Any goroutine may use it; the visits run under its
// lock.
package index

import (
	"hash/maphash"
	"iter"
	"sync"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Index finds the subscribers to a name, and the subscribers that an audience key reaches.
type Index[O any] struct {
	seed maphash.Seed

	mu sync.RWMutex
	// Names are kept as hashes of type and name. A name that a client invents therefore costs
	// less here than its own bytes. Names with one subscriber, as nearly every unknown name,
	// are in one; the others are in several. Two names with one hash share an entry: a later
	// comparison detects the needless mark. The seed is secret, so no client can choose names
	// that collide.
	one     map[uint64]*Entry[O]
	several map[uint64]*numbers
	roll    roll[O]      // every entry
	members audiences[O] // every entry
	wild    audiences[O] // the entries with a wildcard
	views   map[world.View]*View
}

// Entry is one stream's interest in one type. Its exported fields do not change once it is
// in the index.
type Entry[O any] struct {
	Owner    O
	Type     world.Type
	Audience []string // its audience keys

	// The index guards the following fields. Only the stream itself writes them.
	mode   world.Mode
	view   *View // nil until the stream's first turn
	number number
}

// Mode returns the mode in which the stream takes the type.
func (e *Entry[O]) Mode() world.Mode { return e.mode }

// View returns the stream's view of the type; nil until its first turn.
func (e *Entry[O]) View() *View { return e.view }

// View is a view that some streams have. The dispatcher determines once whether a change
// affects it, however many streams share it.
type View struct {
	world.SharedView
	users int
	// Asked is the number of the last question, and Affected its answer. The dispatcher owns
	// both.
	Asked    uint64
	Affected bool
}

type entries[O any] map[*Entry[O]]struct{}

// audiences are entries by type and audience key.
type audiences[O any] map[world.Type]map[string]entries[O]

// New returns an empty index.
func New[O any]() *Index[O] {
	return &Index[O]{
		seed: maphash.MakeSeed(),
		one:  map[uint64]*Entry[O]{}, several: map[uint64]*numbers{},
		members: audiences[O]{}, wild: audiences[O]{}, views: map[world.View]*View{},
	}
}

// hash returns the hash of a type and name. The multiplier spreads small numbers over 64
// bits.
func (x *Index[O]) hash(t world.Type, name string) uint64 {
	return maphash.String(x.seed, name) ^ uint64(t+1)*spread //nolint:gosec // wraps on purpose
}

// Add enters an entry under names, and Remove removes it from them.
func (x *Index[O]) Add(e *Entry[O], names iter.Seq[string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range names {
		h := x.hash(e.Type, name)
		if many := x.several[h]; many != nil {
			many.add(e.number)
			continue
		}
		switch first := x.one[h]; first {
		case nil, e:
			x.one[h] = e
		default:
			many := &numbers{}
			many.add(first.number)
			many.add(e.number)
			x.several[h] = many
			delete(x.one, h)
		}
	}
}

// Remove removes an entry from names.
func (x *Index[O]) Remove(e *Entry[O], names iter.Seq[string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range names {
		h := x.hash(e.Type, name)
		if x.one[h] == e {
			delete(x.one, h)
			continue
		}
		many := x.several[h]
		if many == nil {
			continue
		}
		if many.remove(e.number); many.N == 0 {
			delete(x.several, h)
		}
	}
}

func (a audiences[O]) add(e *Entry[O]) {
	keys := a[e.Type]
	if keys == nil {
		keys = map[string]entries[O]{}
		a[e.Type] = keys
	}
	for _, key := range e.Audience {
		if keys[key] == nil {
			keys[key] = entries[O]{}
		}
		keys[key][e] = struct{}{}
	}
}

func (a audiences[O]) remove(e *Entry[O]) {
	keys := a[e.Type]
	for _, key := range e.Audience {
		delete(keys[key], e)
		if len(keys[key]) == 0 {
			delete(keys, key)
		}
	}
}

// reached yields the entries that any of some audience keys reaches; nil means all keys. An
// entry with several keys may come several times.
func (a audiences[O]) reached(t world.Type, keys []string) iter.Seq[*Entry[O]] {
	return func(yield func(*Entry[O]) bool) {
		if keys == nil {
			for _, list := range a[t] {
				for e := range list {
					if !yield(e) {
						return
					}
				}
			}
		}
		for _, key := range keys {
			for e := range a[t][key] {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Join enters an entry under its audience keys, and Leave removes it.
func (x *Index[O]) Join(e *Entry[O], m world.Mode) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e.mode = m
	x.members.add(e)
	x.roll.enter(e)
}

// Leave removes an entry from its audience keys. Its names are removed before.
func (x *Index[O]) Leave(e *Entry[O]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.members.remove(e)
	x.wild.remove(e)
	x.roll.leave(e)
	x.look(e, nil)
}

// SetWildcard enters or removes an entry in everything of its type.
func (x *Index[O]) SetWildcard(e *Entry[O], on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if on {
		x.wild.add(e)
	} else {
		x.wild.remove(e)
	}
}

// SetMode records the mode in which a stream takes a type. Only the stream calls it.
func (x *Index[O]) SetMode(e *Entry[O], m world.Mode) {
	if e.mode == m {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e.mode = m
}

// SetView records the view of a stream.
func (x *Index[O]) SetView(e *Entry[O], v world.View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	shared := x.views[v]
	if shared == nil {
		shared = &View{SharedView: world.SharedView{View: v}}
		x.views[v] = shared
	}
	x.look(e, shared)
}

// look gives an entry another view, or none. The lock is held.
func (x *Index[O]) look(e *Entry[O], v *View) {
	if old := e.view; old != nil {
		if old.users--; old.users == 0 {
			delete(x.views, old.View)
		}
	}
	if e.view = v; v != nil {
		v.users++
	}
}

// Target is a resource for the streams of a mode that some audience keys reach; nil means
// all keys.
type Target struct {
	Type     world.Type
	Mode     world.Mode
	Name     string
	Audience []string
}

// Concerned calls visit for every entry that a resource concerns and that has a view. The
// index is locked meanwhile.
func (x *Index[O]) Concerned(of Target, visit func(*Entry[O])) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	seeing := func(e *Entry[O]) {
		if e.mode == of.Mode && e.view != nil { // otherwise its first turn considers all names
			visit(e)
		}
	}
	h := x.hash(of.Type, of.Name)
	if e := x.one[h]; e != nil {
		seeing(e)
	}
	if many := x.several[h]; many != nil {
		for n := range many.All {
			seeing(x.roll.by[*n])
		}
	}
	for e := range x.wild.reached(of.Type, of.Audience) {
		seeing(e)
	}
}

// Reached calls visit for every entry of a type that some audience keys reach. The index is
// locked meanwhile.
func (x *Index[O]) Reached(t world.Type, keys []string, visit func(*Entry[O])) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for e := range x.members.reached(t, keys) {
		visit(e)
	}
}

// Len returns the number of names, keys and views in the index.
func (x *Index[O]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := len(x.one) + len(x.several) + len(x.views)
	for _, by := range []audiences[O]{x.members, x.wild} {
		for _, keys := range by {
			n += len(keys)
		}
	}
	return n
}
