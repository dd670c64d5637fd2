package rate_test

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/rate"
)

func TestBucketKeepsItsRate(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := rate.New(rate.Rate{PerSecond: 10, Burst: 3})
	for i, want := range []time.Duration{0, 0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
		if wait, ok := b.Take(start, 1, time.Minute); !ok || wait != want {
			t.Errorf("event %d waits %s, %v; want %s", i, wait, ok, want)
		}
	}
	if _, ok := b.Take(start, 1, 100*time.Millisecond); ok {
		t.Error("an event waits longer than it may")
	}
	if wait, ok := b.Take(start.Add(time.Hour), 1, 0); !ok || wait != 0 {
		t.Error("after a rest an event waits")
	}
}
