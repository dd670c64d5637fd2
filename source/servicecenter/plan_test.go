package servicecenter_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/source/servicecenter"
)

// Rounds come in their time, sooner after changes, and never so often that a
// slow registry does nothing else.
func TestRoundsArePaced(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		poll := time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(time.Minute)).Draw(t, "poll"))
		took := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took"))
		random := rapid.Float64Range(0, 1).Draw(t, "random")
		idle, busy := servicecenter.NextRound(poll, took, false, false, random), servicecenter.NextRound(poll, took, true, false, random)
		if busy > idle || idle > max(poll, 4*took)*11/10 || busy < 3*took || busy < 90*time.Millisecond {
			t.Fatalf("polling every %s, taking %s: %s idle, %s busy", poll, took, idle, busy)
		}
		if first := servicecenter.NextRound(poll, took, true, true, random); first > busy || first < min(busy, max(poll, 5*time.Second)*9/10) || first > max(poll, 5*time.Second)*11/10 {
			t.Fatalf("polling every %s, everything taking %s: %s", poll, took, first)
		}
	})
}
