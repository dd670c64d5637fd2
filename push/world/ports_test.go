package world

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A set of ports has the ports that it was made of, in whatever order, and is equal to
// every set that has the same.
func TestPortsAreASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.SampledFrom([]uint16{0, 1, 80, 255, 256, 8080, 65535}), 0, 9).Draw(t, "numbers")
		set := PortsOf(numbers)
		if again := PortsOf(append(rapid.Permutation(numbers).Draw(t, "order"), numbers...)); again != set {
			t.Fatal("the set of the same ports is another one")
		}
		for _, number := range []uint32{0, 1, 79, 80, 81, 255, 256, 8080, 65535, 65616} {
			if want := number < 1<<16 && slices.Contains(numbers, uint16(number)); set.Has(number) != want {
				t.Errorf("port %d: %t", number, !want)
			}
			if !AllPorts().Has(number) {
				t.Errorf("port %d is not among all", number)
			}
		}
	})
}
