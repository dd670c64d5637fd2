// Package until is for tests that wait for an outcome, instead of sleeping for as long as it
// takes on one machine.
package until

import (
	"context"
	"testing"
	"time"
)

// Patience is how long every test waits for an outcome before it fails. It is far more than
// any outcome takes, because the machine may be busy with other work. A test that waits
// this long for nothing to happen asserts an order of events instead.
const Patience = 2 * time.Minute

// NoError calls check at an interval until it returns no error. After [Patience] it ends the
// test with the description of the outcome and the last error.
func NoError(t testing.TB, interval time.Duration, outcome string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
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
			t.Fatalf("waited %s for %s: %v", Patience, outcome, err)
		}
	}
}
