//go:build !race

package isthmus_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/gauge/measure"
)

// TestWallsHold measures the packages with test/gauge against the bounds in
// CONTRIBUTING.md. The race detector has nothing to find in it.
func TestWallsHold(t *testing.T) {
	t.Parallel()
	packages, err := measure.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range measure.Broken(measure.Of(packages), read(t, "CONTRIBUTING.md")) {
		t.Error(broken)
	}
}
