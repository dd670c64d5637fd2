package index

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is put into a set of numbers and taken out of it, in whatever order, it has what
// a map would have.
func TestNumbersHoldWhatAMapWould(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var several numbers
		members := map[number]bool{}
		for _, n := range rapid.SliceOfN(rapid.Uint32Range(1, 40), 0, 300).Draw(t, "numbers put in or taken out") {
			if n := number(n); members[n] {
				several.remove(n)
				delete(members, n)
			} else {
				several.add(n)
				members[n] = true
			}
			numbered := map[number]bool{}
			for n := range several.All {
				numbered[*n] = true
			}
			if !maps.Equal(numbered, members) || several.N != len(members) {
				t.Fatalf("it has %v, want %v", numbered, members)
			}
			for n := range number(41) {
				if (several.at(n) >= 0) != members[n] {
					t.Fatalf("of %d it is wrong", n)
				}
			}
		}
	})
}

// A burst leaves no room behind that is never used again.
func TestSlotsAreGivenBack(t *testing.T) {
	t.Parallel()
	var several numbers
	for n := range number(10_000) {
		several.add(n + 1)
	}
	for n := range number(9_990) {
		several.remove(n + 1)
	}
	if len(several.List) > 64 {
		t.Errorf("%d slots for %d", len(several.List), several.N)
	}
}
