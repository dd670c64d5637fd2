package push

import (
	"hash/maphash"
	"iter"
	"sync"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// index finds the subscribers to a name, and the subscribers that an audience key reaches.
// An entry is one subscriber's interest in one type.
type index struct {
	seed maphash.Seed

	mu sync.RWMutex
	// Names are kept as hashes of type and name. A name that a client invents therefore costs
	// less here than its own bytes. Names with one subscriber, as nearly every unknown name,
	// are in one; the others are in several. Two names with one hash share an entry: a later
	// comparison detects the needless mark. The seed is secret, so no client can choose names
	// that collide.
	one     map[uint64]*interest
	several map[uint64]*numbers
	roll    roll      // every interest
	members audiences // every interest
	wild    audiences // the wildcard interests
	views   map[View]*sharedView
}

type interests map[*interest]struct{}

// audiences are interests by type and audience key.
type audiences map[Type]map[string]interests

// sharedView is a view that some subscribers have. The dispatcher determines once whether a
// change affects it, however many subscribers share it.
type sharedView struct {
	world.SharedView
	users    int
	asked    uint64 // number of the last question; the dispatcher owns asked and affected
	affected bool   // the answer
}

func newIndex() *index {
	return &index{
		seed: maphash.MakeSeed(),
		one:  map[uint64]*interest{}, several: map[uint64]*numbers{},
		members: audiences{}, wild: audiences{}, views: map[View]*sharedView{},
	}
}

// hash returns the hash of a type and name. The multiplier spreads small numbers over 64
// bits.
func (x *index) hash(t Type, name string) uint64 {
	return maphash.String(x.seed, name) ^ uint64(t+1)*spread //nolint:gosec // wraps on purpose
}

func (x *index) add(i *interest, names iter.Seq[string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range names {
		h := x.hash(i.t, name)
		if many := x.several[h]; many != nil {
			many.add(i.number)
			continue
		}
		switch first := x.one[h]; first {
		case nil, i:
			x.one[h] = i
		default:
			many := &numbers{}
			many.add(first.number)
			many.add(i.number)
			x.several[h] = many
			delete(x.one, h)
		}
	}
}

func (x *index) remove(i *interest, names iter.Seq[string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range names {
		h := x.hash(i.t, name)
		if x.one[h] == i {
			delete(x.one, h)
			continue
		}
		many := x.several[h]
		if many == nil {
			continue
		}
		if many.remove(i.number); many.N == 0 {
			delete(x.several, h)
		}
	}
}

func (a audiences) add(i *interest) {
	keys := a[i.t]
	if keys == nil {
		keys = map[string]interests{}
		a[i.t] = keys
	}
	for _, key := range i.audience {
		if keys[key] == nil {
			keys[key] = interests{}
		}
		keys[key][i] = struct{}{}
	}
}

func (a audiences) remove(i *interest) {
	keys := a[i.t]
	for _, key := range i.audience {
		delete(keys[key], i)
		if len(keys[key]) == 0 {
			delete(keys, key)
		}
	}
}

// reached yields the interests that any of some audience keys reaches; nil means all keys.
// An interest with several keys may come several times.
func (a audiences) reached(t Type, keys []string) iter.Seq[*interest] {
	return func(yield func(*interest) bool) {
		if keys == nil {
			for _, list := range a[t] {
				for i := range list {
					if !yield(i) {
						return
					}
				}
			}
		}
		for _, key := range keys {
			for i := range a[t][key] {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// join enters an interest under its audience keys, and leave removes it.
func (x *index) join(i *interest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.members.add(i)
	x.roll.enter(i)
}

func (x *index) leave(i *interest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.members.remove(i)
	x.wild.remove(i)
	x.roll.leave(i)
	x.look(i, nil)
}

// setWildcard enters or removes an interest in everything of its type.
func (x *index) setWildcard(i *interest, on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if on {
		x.wild.add(i)
	} else {
		x.wild.remove(i)
	}
}

// setMode records the mode in which an interest takes its type.
func (x *index) setMode(i *interest, m Mode) {
	if i.mode == m {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i.mode = m
}

// setView records the view of an interest.
func (x *index) setView(i *interest, v View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	shared := x.views[v]
	if shared == nil {
		shared = &sharedView{SharedView: world.SharedView{View: v}}
		x.views[v] = shared
	}
	x.look(i, shared)
}

// look gives an interest another view, or none. The lock is held.
func (x *index) look(i *interest, v *sharedView) {
	if old := i.view; old != nil {
		if old.users--; old.users == 0 {
			delete(x.views, old.View)
		}
	}
	if i.view = v; v != nil {
		v.users++
	}
}

// concerned calls visit for every interest in a resource that has a view. The index is
// locked meanwhile.
func (x *index) concerned(of target, visit func(*interest)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	seeing := func(i *interest) {
		if i.mode == of.mode && i.view != nil { // otherwise its first turn considers all names
			visit(i)
		}
	}
	h := x.hash(of.t, of.name)
	if i := x.one[h]; i != nil {
		seeing(i)
	}
	if many := x.several[h]; many != nil {
		for n := range many.All {
			seeing(x.roll.by[*n])
		}
	}
	for i := range x.wild.reached(of.t, of.audience) {
		seeing(i)
	}
}

// reached calls visit for every interest in a type that some audience keys reach.
// The index is locked meanwhile.
func (x *index) reached(t Type, keys []string, visit func(*interest)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range x.members.reached(t, keys) {
		visit(i)
	}
}
