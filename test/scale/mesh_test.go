package scale

import (
	"math"
	"math/rand/v2"
	"slices"
)

// heavyTailed returns the sizes of services as large meshes have them: half
// have four endpoints or fewer, one in a hundred has hundreds, one has as many
// as largest says, and together they have a given number. Small services and
// large ones come in no order, but always in the same.
func heavyTailed(services, endpoints, largest int) []int {
	low, high := 0.0, float64(endpoints) // the median is between
	for range 60 {
		if middle := (low + high) / 2; total(logNormal(services-1, middle)) > endpoints-largest {
			high = middle
		} else {
			low = middle
		}
	}
	sizes := append(logNormal(services-1, low), largest)
	for i := 0; total(sizes) < endpoints; i = (i + 1) % (services - 1) {
		sizes[i]++
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(services, func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	return sizes
}

// spread is the standard deviation of the sizes' logarithms. With 1.7 the mean
// is four times the median.
const spread = 1.7

// logNormal returns the quantiles of a logarithmic normal distribution, at
// least one endpoint each.
func logNormal(n int, median float64) []int {
	sizes := make([]int, n)
	for i := range sizes {
		q := (float64(i) + 0.5) / float64(n)
		size := median * math.Exp(spread*math.Sqrt2*math.Erfinv(2*q-1))
		sizes[i] = int(max(1, math.Round(size)))
	}
	return sizes
}

func total(sizes []int) (sum int) {
	for _, size := range sizes {
		sum += size
	}
	return sum
}

// ofSize returns n services whose sizes are next to the one given.
func ofSize(sizes []int, n, size int) []int {
	list := make([]int, len(sizes))
	for i := range list {
		list[i] = i
	}
	away := func(i int) int { return max(sizes[i]-size, size-sizes[i]) }
	slices.SortStableFunc(list, func(a, b int) int { return away(a) - away(b) })
	return list[:min(n, len(list))]
}
