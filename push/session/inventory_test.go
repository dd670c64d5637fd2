package session

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Whatever is put into a table of slots and taken out of it, in whatever order,
// and however many names have one hash, it has what a map would have.
func TestHeldSetHoldsWhatAMapWould(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var held heldSet
		labels := map[string]*world.Label{}
		spreads := rapid.SampledFrom([]uint64{0, 1, 0x9e3779b97f4a7c15, ^uint64(0)}).Draw(t, "spread of the hashes")
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 40), 0, 300).Draw(t, "names put in or taken out") {
			name, hash := fmt.Sprint(n), uint64(n)*spreads
			if labels[name] == nil {
				labels[name] = &world.Label{Name: name, Hash: hash}
				held.add(labels[name]).serial = serial(n)
			} else {
				held.remove(name, hash)
				delete(labels, name)
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
		for h := range held.All {
			found[h.Name] = h.Label
		}
		if !maps.Equal(found, labels) || held.N != len(labels) {
			t.Errorf("it has %v, want %v", found, labels)
		}
	})
}

// A burst leaves no room behind that is never used again.
func TestNamesAreGivenBack(t *testing.T) {
	t.Parallel()
	const names = 10_000
	var lacks nameSet
	for n := range names {
		lacks.add(strconv.Itoa(n))
	}
	for n := range names - 10 {
		if name := strconv.Itoa(n); !lacks.remove(name) {
			t.Fatalf("%s is gone", name)
		}
	}
	if lacks.most > 100 || len(lacks.names) != 10 || lacks.remove("0") {
		t.Errorf("there is room for %d names, of which %d are there", lacks.most, len(lacks.names))
	}
}
