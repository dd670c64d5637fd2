// Package wait has a sleep that a context interrupts, and the rule for the wait before a
// retry.
//
// It starts no goroutine, keeps no state and draws no random number: the caller counts the
// failures, and may be tested without a clock.
package wait

import (
	"context"
	"time"
)

// Sleep waits for a duration, or until ctx ends. It reports whether ctx goes on.
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

// Backoff bounds the wait before a failed action is retried. Min is positive, and Max is
// not below it.
type Backoff struct{ Min, Max time.Duration }

// After returns the wait after so many failures in a row. The longest possible wait is
// twice Min after the first failure, and doubles with each further one up to Max. random is
// in [0, 1) and chooses from the upper half of that range: clients that fail together do
// not return together. No wait is shorter than Min.
func (b Backoff) After(failures int, random float64) time.Duration {
	longest := b.Min
	for ; failures > 0 && longest < b.Max; failures-- {
		longest += min(longest, b.Max-longest)
	}
	shortest := max(longest/2, b.Min)
	return shortest + time.Duration(random*float64(longest-shortest))
}
