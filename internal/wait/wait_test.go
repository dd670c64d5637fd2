package wait_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

const almost = 1 - 1.0/(1<<53)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	b := wait.Backoff{Min: 200 * time.Millisecond, Max: 30 * time.Second}
	for _, test := range []struct {
		failures          int
		shortest, longest string
	}{
		{1, "200ms", "400ms"},
		{2, "400ms", "800ms"},
		{3, "800ms", "1.6s"},
		{7, "12.8s", "25.6s"},
		{8, "15s", "30s"},
		{math.MaxInt, "15s", "30s"},
	} {
		shortest, longest := b.After(test.failures, 0), b.After(test.failures, almost).Round(time.Millisecond)
		if shortest.String() != test.shortest || longest.String() != test.longest {
			t.Errorf("after %d failures: %s to %s, want %s to %s", test.failures, shortest, longest, test.shortest, test.longest)
		}
	}
}

func TestBackoffOfEqualBoundsIsSteady(t *testing.T) {
	for _, random := range []float64{0, 0.5, almost} {
		if got := (wait.Backoff{Min: time.Second, Max: time.Second}).After(3, random); got != time.Second {
			t.Errorf("wait is %s, want 1s", got)
		}
	}
}

// Whatever the bounds, a wait is within them, and the longest ones grow.
func TestBackoffKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lowest := rapid.Int64Range(1, math.MaxInt64).Draw(t, "min")
		b := wait.Backoff{Min: time.Duration(lowest), Max: time.Duration(rapid.Int64Range(lowest, math.MaxInt64).Draw(t, "max"))}
		failures := rapid.IntRange(1, 100).Draw(t, "failures")
		got := b.After(failures, rapid.Float64Range(0, 0.999).Draw(t, "random"))
		if got < b.Min || got > b.Max {
			t.Errorf("%+v waits for %s", b, got)
		}
		if b.After(failures, 0) > b.After(failures+1, 0) {
			t.Errorf("%+v waits less after one failure more", b)
		}
	})
}

func TestSleepEndsWithTheTimeOrTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !wait.Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("slept for %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if wait.Sleep(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("slept for %s although its context had ended", time.Since(began))
		}
		if began = time.Now(); wait.Sleep(ctx, 0) || !wait.Sleep(t.Context(), -time.Second) || time.Now() != began {
			t.Errorf("slept for %s when there was nothing to wait for", time.Since(began))
		}
	})
}
