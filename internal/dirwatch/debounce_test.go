package dirwatch_test

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
)

func TestDebounceWaitsForQuietButNotForEver(t *testing.T) {
	d := dirwatch.Debounce{Quiet: 50 * time.Millisecond, Most: 500 * time.Millisecond}
	first := time.Unix(1000, 0)
	for _, test := range []struct{ newest, want time.Duration }{
		{0, 50 * time.Millisecond},
		{20 * time.Millisecond, 70 * time.Millisecond},
		{450 * time.Millisecond, 500 * time.Millisecond},
		{499 * time.Millisecond, 500 * time.Millisecond},
	} {
		if got := d.Due(first, first.Add(test.newest)).Sub(first); got != test.want {
			t.Errorf("with the newest event after %s it is due after %s, want %s", test.newest, got, test.want)
		}
	}
}
