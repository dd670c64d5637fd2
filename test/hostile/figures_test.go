package hostile

import (
	"math"
	"slices"
	"time"
)

// figures are what was measured of an attack.
type figures struct {
	name string
	ok   bool
	did  string  // what the attack consisted of
	peak float64 // bytes the program had in memory at most
	// quiet and beside are what changes took until the good client had ACKed
	// them, before the attack and beside it; ready is what /readyz took.
	quiet, beside, ready sample
	rejected, delayed    float64 // streams and connections, and requests
}

const mib = 1 << 20

type sample []time.Duration

// quantile returns the smallest duration that at least the share q do not
// exceed; 0 if there is none.
func (s sample) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
