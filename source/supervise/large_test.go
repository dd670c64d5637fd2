package supervise_test

import "testing"

// However many endpoints an object has, readers get it once.
func TestTwentyThousandEndpointsAreOneCommit(t *testing.T) {
	const endpoints = 20_000
	supervised(t, func(b *bridge) {
		b.list(service("stays", "f", "1"))
		before := len(b.store.commits)
		b.list(service("stays", "f", "1"), service("big", "f", crowd(endpoints)...))
		if n := len(b.store.commits) - before; n != 1 {
			t.Errorf("%d commits brought one object", n)
		}
		if got := b.Status().Endpoints; got != endpoints+1 {
			t.Errorf("%d endpoints are stored", got)
		}
	})
}
