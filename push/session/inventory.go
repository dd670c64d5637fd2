package session

import (
	"hash/maphash"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/slots"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// inventory is the versions that a client holds of a type, and the names that it asks for.
// A name that is both has one entry.
type inventory struct {
	seed  maphash.Seed
	full  bool    // every response is the whole set
	held  heldSet // the resources that the client holds
	lacks nameSet // names that it asks for and holds no resource of
	asked int     // number of names that it asks for
	sum   world.Version
}

// holding is a name that the client has, or may have. There is one for each resource of
// each stream, so it is small.
type holding struct {
	*world.Label // nil in a slot that is free

	serial serial // of the response that brought it; 0 if it was NACKed, or no response on this stream did
	mark   uint16 // part of the hash, to distinguish most names without their labels
	named  bool   // requested by name
	known  knowledge
}

// knowledge is how the engine knows that a client holds a resource.
type knowledge uint8

const (
	claimed   knowledge = iota // the client claims it, without other evidence
	confirmed                  // the client claims it, and would be sent the same
	sent                       // sent on this stream
	unsure                     // sent and NACKed: the client has this version or an earlier one
)

// onStream reports whether a response on this stream brought the resource.
func (h *holding) onStream() bool { return h.known >= sent }

// is reports whether the client holds exactly this version.
func (h *holding) is(m world.Member) bool { return h.known != unsure && h.Member == m }

// serial is a response's number, shortened to be kept with each name of the response. It
// distinguishes the responses that may still be answered.
type serial uint32

func serialOf(n uint64) serial { return serial(n) } //nolint:gosec // see above

// hash returns the hash of a name, as labels contain it.
func (i *inventory) hash(name string) uint64 { return maphash.String(i.seed, name) }

// holding returns the client's holding of a name; nil if there is none. The pointer is
// valid until the next change of the held set.
func (i *inventory) holding(name string) *holding {
	if i.held.N == 0 {
		return nil
	}
	return i.held.find(name, i.hash(name))
}

// named reports whether the client asks for the name itself.
func (i *inventory) named(name string) bool {
	if h := i.holding(name); h != nil {
		return h.named
	}
	return i.lacks.has(name)
}

// allNamed yields the names that the client asks for.
func (i *inventory) allNamed(yield func(string) bool) {
	for name := range i.lacks.names {
		if !yield(name) {
			return
		}
	}
	for h := range i.held.All {
		if h.named && !yield(h.Name) {
			return
		}
	}
}

// ask records that the client asks for a name, and reports whether that is new. drop is the
// opposite.
func (i *inventory) ask(name string) bool {
	h := i.holding(name)
	switch {
	case h == nil && i.lacks.has(name), h != nil && h.named:
		return false
	case h == nil:
		i.lacks.add(name)
	default:
		h.named = true
	}
	i.asked++
	return true
}

func (i *inventory) drop(name string) {
	if h := i.holding(name); h != nil {
		h.named = false
	} else {
		i.lacks.remove(name)
	}
	i.asked--
}

// enter records that a response brings a resource to the client. It keeps the resource's own
// name, which all streams share.
func (i *inventory) enter(res *world.Resource, by uint64) {
	h := i.held.find(res.Name, res.Own.Hash)
	if h == nil {
		named := i.lacks.remove(res.Name)
		h = i.held.add(res.Shared)
		h.named = named
	} else {
		i.sum = i.sum.Without(h.Member)
	}
	i.share(h, res)
	h.serial, h.known = serialOf(by), sent
	i.sum = i.sum.With(res.Own.Member)
}

// share replaces a holding's label by the resource's own, which all streams share.
func (i *inventory) share(h *holding, res *world.Resource) {
	h.Label = res.Shared
	if i.full {
		h.Label = &res.Own
	}
}

// release records that the client no longer holds a resource.
func (i *inventory) release(name string) {
	h := i.holding(name)
	if h == nil {
		return
	}
	i.sum = i.sum.Without(h.Member)
	if h.named {
		i.lacks.add(h.Name)
	}
	i.held.remove(h.Name, h.Hash)
}

// unsettle records that the client may hold another version than the one it was sent.
func (i *inventory) unsettle(h *holding) {
	unknown := world.MemberOf(h.Name, world.Version{})
	i.sum = i.sum.Without(h.Member).With(unknown)
	h.Label = &world.Label{Name: h.Name, Member: unknown, Hash: h.Hash}
	h.serial, h.known = 0, unsure
}

// resume records a version that the client claims to hold.
func (i *inventory) resume(name string, v world.Version, now time.Time) {
	h := i.held.add(&world.Label{Name: name, Member: world.MemberOf(name, v), Hash: i.hash(name), Version: v, Made: now})
	h.named = i.lacks.remove(name)
	i.sum = i.sum.With(h.Member)
}

// suspect records that the client may have some version of a name.
func (i *inventory) suspect(name string) {
	i.resume(name, world.Version{}, time.Time{})
	i.unsettle(i.holding(name))
}

// heldSet is the set of resources that a client holds of a type, by name. A map would take
// twice the memory, and this set is most of the cost of a stream. A pointer into it is valid
// until the next add or remove.
type heldSet struct{ slots.Table[holding] }

// Free reports whether a slot is free.
func (h holding) Free() bool { return h.Label == nil }

// Key returns the hash of the name.
func (h holding) Key() uint64 { return h.Hash }

// find returns the holding of a name; nil if there is none.
func (s *heldSet) find(name string, hash uint64) *holding {
	if at := s.at(name, hash); at >= 0 {
		return &s.List[at]
	}
	return nil
}

// at returns the slot of a name; -1 if there is none.
func (s *heldSet) at(name string, hash uint64) int {
	if s.N == 0 {
		return -1
	}
	mark := uint16(hash) //nolint:gosec // the lower bits
	for at := s.Home(hash); s.List[at].Label != nil; at = s.Next(at) {
		if h := &s.List[at]; h.mark == mark && h.Name == name {
			return at
		}
	}
	return -1
}

// add enters a name that the set lacks.
func (s *heldSet) add(l *world.Label) *holding {
	return s.Put(holding{Label: l, mark: uint16(l.Hash)}) //nolint:gosec // as above
}

// remove takes out a name that the set contains.
func (s *heldSet) remove(name string, hash uint64) { s.Take(s.at(name, hash)) }

// nameSet is the names that a client asks for and holds no resource of. A name that does
// not exist costs no more than its place in this set.
type nameSet struct {
	names map[string]struct{}
	most  int // largest size since the map was made
}

func (s *nameSet) has(name string) bool {
	_, ok := s.names[name]
	return ok
}

func (s *nameSet) add(name string) {
	if s.names == nil {
		s.names = map[string]struct{}{}
	}
	s.names[name] = struct{}{}
	s.most = max(s.most, len(s.names))
}

// remove reports whether the name was there. Most names are here only until they are
// answered, and a map never shrinks. A small map therefore replaces a mostly empty one.
func (s *nameSet) remove(name string) bool {
	before := len(s.names)
	delete(s.names, name)
	switch n := len(s.names); {
	case n == before:
		return false
	case n == 0:
		*s = nameSet{}
	case s.most > Few && n < s.most/8:
		rest := make(map[string]struct{}, n)
		for name := range s.names {
			rest[name] = struct{}{}
		}
		*s = nameSet{rest, n}
	}
	return true
}
