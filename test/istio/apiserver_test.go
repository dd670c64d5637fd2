package istio_test

import (
	"fmt"
	"testing"
)

// TestAPIServerIsKilledInMidPush kills the API server while many objects are
// written, changes the registry while it is away, and starts it again.
func TestAPIServerIsKilledInMidPush(t *testing.T) {
	t.Parallel()
	own := startCluster(t)
	api, registry := connect(t, own), startRegistry(t)
	registry.AddMany("many", 200)
	b := api.Bridge(registry, "killed")
	i := serve(t, api, b)
	api.AwaitWrites(i.user, b.namespace, 50)
	own.API.Kill()

	registry.Add("late", "10.0.0.9:80")
	registry.Drop("many-7")
	registry.Remove("many-8", registry.Services()["many-8"][0])
	registry.Add("many-9", "10.9.9.9:80")
	registry.AwaitRequests(4)
	if err := own.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	api.Settle(b)
	i.MustLive()
	api.MustHaveDeletedAtMost(b.namespace, "many-7")

	// Once more, when nothing is to be written. What is asked for meanwhile is
	// written when it is back, and nothing is written twice.
	before := len(api.own(b.namespace))
	own.API.Kill()
	registry.Add("many-10", "10.9.9.9:80")
	registry.AwaitRequests(4)
	if err := own.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	api.Settle(b)
	i.MustLive()
	if writes := api.own(b.namespace)[before:]; len(writes) != 2 { // the change and the marker
		t.Errorf("a restart of the API server made %d writes: %v", len(writes), writes)
	}
	api.MustHaveDeletedAtMost(b.namespace, "many-7")
}

// AwaitWrites waits until a user has changed so many objects.
func (a *api) AwaitWrites(user, namespace string, count int) {
	a.t.Helper()
	await(a.t, fmt.Sprintf("%d writes by %s", count, user), func() error {
		done := 0
		for _, w := range a.WritesBy(user, namespace) {
			if w.Changed() {
				done++
			}
		}
		if done < count {
			return fmt.Errorf("there were %d", done)
		}
		return nil
	})
}
