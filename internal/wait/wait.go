// Package wait has the one sleep that a context cuts short, and the one rule of
// how long to wait before something that failed is tried again.
//
// It starts no goroutine, keeps no state and draws no random number: whoever
// retries counts the failures, and may be tested without a clock.
package wait

import (
	"context"
	"time"
)

// Sleep waits for so long, or until ctx ends. It reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	// Cases: the time is over; ctx has ended.
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Backoff bounds the wait before something that failed is tried again. Min is
// more than nothing, and Max is not below it.
type Backoff struct{ Min, Max time.Duration }

// After returns the wait after so many failures in a row. The longest it may be
// is twice Min after the first, and doubles with every other one up to Max.
// Random is in [0, 1) and chooses from the upper half of that, so that those
// who fail together do not return together. No wait is shorter than Min.
func (b Backoff) After(failures int, random float64) time.Duration {
	longest := b.Min
	for ; failures > 0 && longest < b.Max; failures-- {
		longest += min(longest, b.Max-longest)
	}
	shortest := max(longest/2, b.Min)
	return shortest + time.Duration(random*float64(longest-shortest))
}
