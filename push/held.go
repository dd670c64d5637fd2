package push

import "github.com/isthmus-mesh/isthmus/push/world"

// holding is a name that the subscriber has, or may have. There is one for each
// resource of each stream, so it is small.
type holding struct {
	*world.Label // nil in a slot that is free

	serial serial // of the response that brought it; 0 if it was NACKed, or no response on this stream did
	mark   uint16 // part of the hash, to distinguish most names without their labels
	named  bool   // requested by name
	known  knowledge
}

// knowledge is how the engine knows that a subscriber holds a resource.
type knowledge uint8

const (
	claimed   knowledge = iota // the subscriber claims it, without other evidence
	confirmed                  // the subscriber claims it, and would be sent the same
	sent                       // sent on this stream
	unsure                     // sent and NACKed: the subscriber has this version or an earlier one
)

// onStream reports whether a response on this stream brought the resource.
func (h *holding) onStream() bool { return h.known >= sent }

// is reports whether the subscriber holds exactly this version.
func (h *holding) is(m world.Member) bool { return h.known != unsure && h.Member == m }

// serial is a response's number, shortened to be kept with each name of the response. It
// distinguishes the responses that may still be answered.
type serial uint32

func serialOf(n uint64) serial { return serial(n) } //nolint:gosec // see above

// heldSet is the set of resources that a subscriber holds of a type, by name. A map would
// take twice the memory, and this set is most of the cost of a stream. A pointer into it is
// valid until the next add or remove.
type heldSet struct{ slots[holding] }

func (h holding) empty() bool { return h.Label == nil }

func (h holding) key() uint64 { return h.Hash }

// find returns the holding of a name; nil if there is none.
func (s *heldSet) find(name string, hash uint64) *holding {
	if at := s.at(name, hash); at >= 0 {
		return &s.list[at]
	}
	return nil
}

// at returns the slot of a name; -1 if there is none.
func (s *heldSet) at(name string, hash uint64) int {
	if s.n == 0 {
		return -1
	}
	mark := uint16(hash) //nolint:gosec // the lower bits
	for at := s.home(hash); s.list[at].Label != nil; at = s.next(at) {
		if h := &s.list[at]; h.mark == mark && h.Name == name {
			return at
		}
	}
	return -1
}

// add enters a name that the set lacks.
func (s *heldSet) add(l *world.Label) *holding {
	return s.put(holding{Label: l, mark: uint16(l.Hash)}) //nolint:gosec // as above
}

// remove takes out a name that the set contains.
func (s *heldSet) remove(name string, hash uint64) { s.take(s.at(name, hash)) }

// nameSet is the names that a subscriber asks for and holds no resource of. A name that
// does not exist costs no more than its place in this set.
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
	case s.most > few && n < s.most/8:
		rest := make(map[string]struct{}, n)
		for name := range s.names {
			rest[name] = struct{}{}
		}
		*s = nameSet{rest, n}
	}
	return true
}
