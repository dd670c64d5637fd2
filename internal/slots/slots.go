// Package slots is a hash table for a very large number of small entries. It saves memory
// against a map, and knows nothing of the entries but their slots. The push engine keeps the
// names of each stream in it.
//
// Concurrency: a [Table] belongs to one goroutine at a time.
package slots

import "math/bits"

// Table is a table with open addressing: an entry lies where its hash points to, or in one
// of the following slots. It holds entries of which there is one for each resource and each
// stream, where a map would take twice the memory.
type Table[S Entry] struct {
	List []S // the slots; not to be written to
	N    int // used slots
}

// Entry is an entry of a table. The zero value is a free slot.
type Entry interface {
	Free() bool
	Key() uint64 // the entry's hash
}

const fewestSlots = 8

// Put enters an entry that the table lacks.
func (s *Table[S]) Put(what S) *S {
	if 5*(s.N+1) > 4*len(s.List) {
		s.resize(max(fewestSlots, len(s.List)+len(s.List)/2))
	}
	s.N++
	return s.place(what)
}

// Take empties a slot. Entries behind it move up, so that no search ends too early.
func (s *Table[S]) Take(at int) {
	for from := s.Next(at); !s.List[from].Free(); from = s.Next(from) {
		if home := s.Home(s.List[from].Key()); s.distance(home, from) >= s.distance(at, from) {
			s.List[at] = s.List[from]
			at = from
		}
	}
	var none S
	s.List[at] = none
	s.N--
	if len(s.List) > fewestSlots && 4*s.N < len(s.List) {
		s.resize(max(fewestSlots, len(s.List)/2))
	}
}

func (s *Table[S]) resize(size int) {
	old := s.List
	s.List = make([]S, size)
	for _, what := range old {
		if !what.Free() {
			s.place(what)
		}
	}
}

// place puts an entry into its first free slot.
func (s *Table[S]) place(what S) *S {
	at := s.Home(what.Key())
	for !s.List[at].Free() {
		at = s.Next(at)
	}
	s.List[at] = what
	return &s.List[at]
}

// Home returns the slot that a hash points to. It uses the upper bits.
func (s *Table[S]) Home(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(len(s.List)))
	return int(at) //nolint:gosec // it is less than the slots
}

// Next returns the slot behind another, in which a search goes on.
func (s *Table[S]) Next(at int) int {
	if at++; at < len(s.List) {
		return at
	}
	return 0
}

// distance returns the number of slots between two.
func (s *Table[S]) distance(from, to int) int {
	if to < from {
		to += len(s.List)
	}
	return to - from
}

// All yields the entries. Nothing may be put in or taken out meanwhile.
func (s *Table[S]) All(yield func(*S) bool) {
	for at := range s.List {
		if !s.List[at].Free() && !yield(&s.List[at]) {
			return
		}
	}
}
