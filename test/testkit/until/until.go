// Package until is for tests that wait for what must come about, instead of
// sleeping for as long as it takes on one machine.
package until

import (
	"context"
	"testing"
	"time"
)

// NoError asks at an interval until there is no error. When patience has run out,
// it ends the test with what was waited for and the last error. Patience should
// be far more than it takes: the machine may be busy with other things.
func NoError(t testing.TB, patience, interval time.Duration, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(interval)
	defer again.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waited %s for %s: %v", patience, what, err)
		}
	}
}
