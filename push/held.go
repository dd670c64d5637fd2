package push

import (
	"hash/maphash"
	"math/bits"
)

// label is what is to be known of a resource that subscribers have. All of them
// share it. It does not keep the resource itself in memory, for one who is slow
// would do so with each revision that others have long left behind.
type label struct {
	name   string
	member member
	hash   uint64    // of the name
	whole  *Resource // only for whoever is sent the full set each time
}

// holding is a name that the subscriber has, or may have. There is one for each
// resource of each stream, so it is small.
type holding struct {
	*label // nil in a slot that is free

	serial serial // of the response that brought it; 0 if none did on this stream, or it was NACKed
	mark   uint16 // of the hash, to tell most names apart without their labels
	named  bool   // it is asked for by name
	known  knowledge
}

// knowledge is how the engine knows that a subscriber has something.
type knowledge uint8

const (
	said   knowledge = iota // by the subscriber's own word, which is all there is
	agreed                  // by its word, and it is what the subscriber would be sent
	sent                    // it was sent on this stream
	unsure                  // likewise, and NACKed: the subscriber may have it or what was before
)

// onStream reports whether a response on this stream brought it.
func (h *holding) onStream() bool { return h.known >= sent }

// is reports whether the subscriber has exactly this.
func (h *holding) is(m member) bool { return h.known != unsure && h.member == m }

// serial is what is kept of a response's number with each name that it brought:
// enough to tell those apart that may still be answered.
type serial uint32

func serialOf(n uint64) serial { return serial(n) } //nolint:gosec // see above

// heldSet is what a subscriber has of a type, by name. A map would take twice the
// room, and this is most of what a stream costs. Slots are found by the hash, or
// follow where it points to; a pointer to one holds until the set is added to or
// removed from.
type heldSet struct {
	slots []holding
	n     int
}

const fewestSlots = 8

// find returns what the set has of a name; nil if nothing.
func (s *heldSet) find(name string, hash uint64) *holding {
	if s.n == 0 {
		return nil
	}
	for at, mark := s.home(hash), uint16(hash); ; at = s.next(at) { //nolint:gosec // the lower bits
		h := &s.slots[at]
		if h.label == nil {
			return nil
		}
		if h.mark == mark && h.name == name {
			return h
		}
	}
}

// add enters a name that the set does not have.
func (s *heldSet) add(l *label) *holding {
	if 5*(s.n+1) > 4*len(s.slots) {
		s.resize(max(fewestSlots, len(s.slots)+len(s.slots)/2))
	}
	s.n++
	h := s.free(l.hash)
	*h = holding{label: l, mark: uint16(l.hash)} //nolint:gosec // as above
	return h
}

// remove takes out what find returned. What comes behind it moves up, so that
// no search ends too early.
func (s *heldSet) remove(name string, hash uint64) {
	at := s.home(hash)
	for s.slots[at].name != name {
		at = s.next(at)
	}
	for from := s.next(at); s.slots[from].label != nil; from = s.next(from) {
		if home := s.home(s.slots[from].hash); s.distance(home, from) >= s.distance(at, from) {
			s.slots[at] = s.slots[from]
			at = from
		}
	}
	s.slots[at] = holding{}
	s.n--
	if len(s.slots) > fewestSlots && 4*s.n < len(s.slots) {
		s.resize(max(fewestSlots, len(s.slots)/2))
	}
}

func (s *heldSet) resize(slots int) {
	old := s.slots
	s.slots = make([]holding, slots)
	for _, h := range old {
		if h.label != nil {
			*s.free(h.hash) = h
		}
	}
}

// free returns the slot for a name that the set does not have.
func (s *heldSet) free(hash uint64) *holding {
	at := s.home(hash)
	for s.slots[at].label != nil {
		at = s.next(at)
	}
	return &s.slots[at]
}

// home is the slot that a hash points to. It goes by the upper bits.
func (s *heldSet) home(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(len(s.slots)))
	return int(at) //nolint:gosec // it is less than the slots
}

func (s *heldSet) next(at int) int {
	if at++; at < len(s.slots) {
		return at
	}
	return 0
}

// distance is how many slots one goes from one to another.
func (s *heldSet) distance(from, to int) int {
	if to < from {
		to += len(s.slots)
	}
	return to - from
}

// all yields what is in the set. It must not be added to or removed from meanwhile.
func (s *heldSet) all(yield func(*holding) bool) {
	for at := range s.slots {
		if h := &s.slots[at]; h.label != nil && !yield(h) {
			return
		}
	}
}

// nameSet is the names that a subscriber asks for and of which it has nothing. One
// that stands for nothing costs no more than its place in here.
type nameSet struct {
	names map[string]struct{}
	most  int // that there were since the map was made
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

// remove reports whether the name was there. A map never shrinks, so that one is
// left behind by and by: most names are here only until they are answered.
func (s *nameSet) remove(name string) bool {
	if !s.has(name) {
		return false
	}
	delete(s.names, name)
	switch n := len(s.names); {
	case n == 0:
		*s = nameSet{}
	case s.most > few && n < s.most/8:
		rest := make(map[string]struct{}, n)
		for name := range s.names {
			rest[name] = struct{}{}
		}
		*s = nameSet{rest, n}
	}
	return true
}

// hash is that of a name in labels.
func (c *cache) hash(name string) uint64 { return maphash.String(c.seed, name) }
