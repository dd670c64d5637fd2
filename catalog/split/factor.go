package split

import "math"

// Total is the sum of the weights of all endpoints, about. Weights of several services can
// be added up in 32 bits, and one endpoint of 20,000 with 1 % of the calls still has a weight
// of 134.
const Total = 1 << 28

// steps is the number of steps between a factor and twice the factor. A step is between
// 0.25 and 0.5 % of the factor, so one endpoint among hundreds often changes no other's
// weight.
const steps = 200

// Factor is the number by which the weights of a backend's endpoints are multiplied. The
// zero value is the factor of a backend without a share, or without endpoints. Equal factors
// are ==.
type Factor struct {
	mantissa uint16 // in [steps, 2*steps)
	exponent int16
}

// Factors returns the factors of backends, given the share that each one asks for and the sum
// of its endpoints' weights. The share of a backend without endpoints goes to the others. All
// factors are zero if no backend with a share has endpoints.
func Factors(asked []uint32, sums []uint64) []Factor {
	factors := make([]Factor, len(asked))
	whole := uint64(0)
	for i, share := range asked {
		if sums[i] > 0 {
			whole += uint64(share)
		}
	}
	for i, share := range asked {
		if sums[i] > 0 && share > 0 {
			factors[i] = round(Total * (float64(share) / float64(whole)) / float64(sums[i]))
		}
	}
	return factors
}

// round returns the nearest factor. Each operation is exact or rounded as IEEE 754 says, so
// that all machines agree.
func round(f float64) Factor {
	fraction, exponent := math.Frexp(f)
	mantissa := math.Round(fraction * (2 * steps))
	if mantissa == 2*steps {
		mantissa, exponent = steps, exponent+1
	}
	return Factor{uint16(mantissa), int16(exponent)} //nolint:gosec // both are small
}

// Times returns the exact product of a factor and a weight.
func (f Factor) Times(weight uint32) float64 {
	if f == (Factor{}) {
		return 0
	}
	return math.Ldexp(float64(weight)*float64(f.mantissa)/(2*steps), int(f.exponent))
}

// Weight rounds a product, or a sum of products, to a weight. It is at least 1.
func Weight(product float64) uint32 {
	return uint32(min(max(math.Round(product), 1), math.MaxUint32))
}
