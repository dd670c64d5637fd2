package push

import "hash/maphash"

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
// room, and this is most of what a stream costs. A pointer into it holds until it
// is added to or removed from.
type heldSet struct{ slots[holding] }

func (h holding) empty() bool { return h.label == nil }

func (h holding) key() uint64 { return h.hash }

// find returns what the set has of a name; nil if nothing.
func (s *heldSet) find(name string, hash uint64) *holding {
	if at := s.at(name, hash); at >= 0 {
		return &s.list[at]
	}
	return nil
}

// at is the slot of a name; -1 if there is none.
func (s *heldSet) at(name string, hash uint64) int {
	if s.n == 0 {
		return -1
	}
	mark := uint16(hash) //nolint:gosec // the lower bits
	for at := s.home(hash); s.list[at].label != nil; at = s.next(at) {
		if h := &s.list[at]; h.mark == mark && h.name == name {
			return at
		}
	}
	return -1
}

// add enters a name that the set does not have.
func (s *heldSet) add(l *label) *holding {
	return s.put(holding{label: l, mark: uint16(l.hash)}) //nolint:gosec // as above
}

// remove takes out a name that the set has.
func (s *heldSet) remove(name string, hash uint64) { s.take(s.at(name, hash)) }

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
	before := len(s.names)
	delete(s.names, name)
	switch n := len(s.names); {
	case n == before:
		return false
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
