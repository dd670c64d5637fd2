package push

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Whatever is put into a table of slots and taken out of it, in whatever order,
// and however many names have one hash, it has what a map would have.
func TestSlotsHoldWhatAMapWould(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var held heldSet
		var several numbers
		labels, members := map[string]*world.Label{}, map[number]bool{}
		spreads := rapid.SampledFrom([]uint64{0, 1, spread, ^uint64(0)}).Draw(t, "spread of the hashes")
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 40), 0, 300).Draw(t, "names put in or taken out") {
			name, hash := fmt.Sprint(n), uint64(n)*spreads
			if labels[name] == nil {
				labels[name] = &world.Label{Name: name, Hash: hash}
				members[number(n)] = true
				held.add(labels[name]).serial = serial(n)
				several.add(number(n))
			} else {
				held.remove(name, hash)
				several.remove(number(n))
				delete(labels, name)
				delete(members, number(n))
			}
			for n := range 41 {
				name, hash := fmt.Sprint(n), uint64(n)*spreads
				h := held.find(name, hash)
				if has := h != nil; has != (labels[name] != nil) || has && (h.Label != labels[name] || h.serial != serial(n)) {
					t.Fatalf("of %s it has %v, want %v", name, h, labels[name])
				}
			}
		}
		found := map[string]*world.Label{}
		for h := range held.all {
			found[h.Name] = h.Label
		}
		numbered := map[number]bool{}
		for n := range several.all {
			numbered[*n] = true
		}
		if !maps.Equal(found, labels) || held.n != len(labels) || !maps.Equal(numbered, members) || several.n != len(members) {
			t.Errorf("it has %v and %v, want %v", found, numbered, labels)
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
	if len(several.list) > 64 {
		t.Errorf("%d slots for %d", len(several.list), several.n)
	}
	var lacks nameSet
	for _, name := range namesOf(10_000) {
		lacks.add(name)
	}
	for _, name := range namesOf(9_990) {
		if !lacks.remove(name) {
			t.Fatalf("%s is gone", name)
		}
	}
	if lacks.most > 100 || len(lacks.names) != 10 || lacks.remove(nameAt(0)) {
		t.Errorf("there is room for %d names, of which %d are there", lacks.most, len(lacks.names))
	}
}
