package source

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	b := backoff{floor: 200 * time.Millisecond, limit: 30 * time.Second}
	const almost = 1 - 1.0/(1<<53)
	for i, want := range []string{"400ms", "800ms", "1.6s", "3.2s", "6.4s", "12.8s", "25.6s", "30s", "30s"} {
		if got := b.next(almost).Round(time.Millisecond); got.String() != want {
			t.Errorf("longest wait %d is %s, want %s", i, got, want)
		}
	}
	if got := b.next(0); got != b.floor {
		t.Errorf("shortest wait is %s, want %s", got, b.floor)
	}
	b.reset()
	if got := b.next(almost).Round(time.Millisecond); got != 2*b.floor {
		t.Errorf("longest wait after a reset is %s", got)
	}
}

func TestBackoffOfEqualBoundsIsSteady(t *testing.T) {
	b := backoff{floor: time.Second, limit: time.Second}
	for _, random := range []float64{0, 0.5, 0.9} {
		if got := b.next(random); got != time.Second {
			t.Errorf("wait is %s, want 1s", got)
		}
	}
}
