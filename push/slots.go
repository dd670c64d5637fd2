package push

import "math/bits"

// slots is a table with open addressing: an entry lies where its hash points to, or in one
// of the following slots. It holds entries of which there is one for each resource and each
// stream, where a map would take twice the memory.
type slots[S slot] struct {
	list []S
	n    int // used slots
}

// slot is an entry of a table.
type slot interface {
	empty() bool
	key() uint64 // the entry's hash
}

const fewestSlots = 8

// put enters an entry that the table lacks.
func (s *slots[S]) put(what S) *S {
	if 5*(s.n+1) > 4*len(s.list) {
		s.resize(max(fewestSlots, len(s.list)+len(s.list)/2))
	}
	s.n++
	return s.place(what)
}

// take empties a slot. Entries behind it move up, so that no search ends too early.
func (s *slots[S]) take(at int) {
	for from := s.next(at); !s.list[from].empty(); from = s.next(from) {
		if home := s.home(s.list[from].key()); s.distance(home, from) >= s.distance(at, from) {
			s.list[at] = s.list[from]
			at = from
		}
	}
	var none S
	s.list[at] = none
	s.n--
	if len(s.list) > fewestSlots && 4*s.n < len(s.list) {
		s.resize(max(fewestSlots, len(s.list)/2))
	}
}

func (s *slots[S]) resize(size int) {
	old := s.list
	s.list = make([]S, size)
	for _, what := range old {
		if !what.empty() {
			s.place(what)
		}
	}
}

// place puts an entry into its first free slot.
func (s *slots[S]) place(what S) *S {
	at := s.home(what.key())
	for !s.list[at].empty() {
		at = s.next(at)
	}
	s.list[at] = what
	return &s.list[at]
}

// home returns the slot that a hash points to. It uses the upper bits.
func (s *slots[S]) home(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(len(s.list)))
	return int(at) //nolint:gosec // it is less than the slots
}

func (s *slots[S]) next(at int) int {
	if at++; at < len(s.list) {
		return at
	}
	return 0
}

// distance returns the number of slots between two.
func (s *slots[S]) distance(from, to int) int {
	if to < from {
		to += len(s.list)
	}
	return to - from
}

// all yields the entries. Nothing may be put in or taken out meanwhile.
func (s *slots[S]) all(yield func(*S) bool) {
	for at := range s.list {
		if !s.list[at].empty() && !yield(&s.list[at]) {
			return
		}
	}
}
