package split_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// Each part gets its share within 2 %, whatever the number and the weights of its members,
// and the parts without members give theirs to the others.
func TestPartsGetTheirShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "parts")
		asked, sums, members := make([]uint32, n), make([]uint64, n), make([][]uint32, n)
		whole := 0.0
		for i := range n {
			asked[i] = rapid.SampledFrom([]uint32{0, 1, 5, 50, 99, 1000}).Draw(t, "asked")
			weights := rapid.SliceOfN(rapid.SampledFrom([]uint32{1, 1, 2, 7, 100}), 1, 4).Draw(t, "weights")
			for k := range rapid.SampledFrom([]int{0, 1, 3, 40, 5000}).Draw(t, "members") {
				members[i] = append(members[i], weights[k%len(weights)])
				sums[i] += uint64(weights[k%len(weights)])
			}
			if sums[i] > 0 {
				whole += float64(asked[i])
			}
		}
		got := make([]float64, n)
		total := 0.0
		for i, f := range split.Factors(asked, sums) {
			if (f == split.Factor{}) != (sums[i] == 0 || asked[i] == 0) {
				t.Fatalf("part %d has the factor %v", i, f)
			}
			for _, w := range members[i] {
				if asked[i] > 0 {
					got[i] += float64(split.Weight(f.Times(w)))
				}
			}
			total += got[i]
		}
		if total > math.MaxUint32 {
			t.Fatalf("all weights are %g, more than 32 bits", total)
		}
		for i := range n {
			if want := float64(asked[i]) / whole; sums[i] > 0 && math.Abs(got[i]/total-want) > 0.02*want {
				t.Fatalf("part %d of %v has %g, asked %g", i, asked, got[i]/total, want)
			}
		}
	})
}

// A split whose backends ask for nothing has shares of 0, which JSON can show.
func TestWithoutWeightsAllSharesAreZero(t *testing.T) {
	t.Parallel()
	s := split.Split{Backends: []model.Backend{{Source: "a"}, {Source: "b"}}}
	for _, share := range s.Shares([]int{1, 0}) {
		if share.Asked != 0 || share.Effective != 0 {
			t.Errorf("%s asks for %g and gets %g", share.Source, share.Asked, share.Effective)
		}
	}
}

// One member among hundreds changes the factor of its part in a few steps at most, and of
// thousands hardly ever.
func TestFactorsHaveSteps(t *testing.T) {
	t.Parallel()
	changes, last := 0, split.Factor{}
	for n := uint64(4000); n < 8000; n++ {
		factor := split.Factors([]uint32{1, 99}, []uint64{n, 10})[0]
		if factor != last {
			changes++
		}
		last = factor
	}
	if changes > 201 || changes < 150 {
		t.Errorf("the factor changes %d times while members double; a step is 0.25 to 0.5 %%", changes)
	}
}
