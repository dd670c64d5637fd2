package istio_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// TestRestartWithoutRegistryTakesNothingAway kills an Isthmus that keeps nothing
// on disk, and starts it while the registry fails: what it wrote stays.
func TestRestartWithoutRegistryTakesNothingAway(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.AddMany("many", 20)
	b := api.Bridge(registry, "restart")
	b.alone = true
	i := serve(t, api, b)
	api.Settle(b)
	i.Kill()
	registry.Drop("many-1") // while nobody looks
	registry.Remove("many-2", registry.Services()["many-2"][0])
	registry.Add("many-3", "10.9.9.9:80")
	registry.Inject(servicecenter.Any, servicecenter.FailWith(servicecenter.BackendDown), 0)
	before := api.own(b.namespace)

	i.Restart()
	registry.AwaitRequests(3)
	if writes := api.own(b.namespace)[len(before):]; len(writes) > 0 {
		t.Errorf("without its registry it wrote %+v", writes)
	}
	registry.Repair()
	api.Settle(b)
	api.MustHaveDeleted(b.namespace, "many-1")
	if writes := api.own(b.namespace)[len(before):]; len(writes) != 3+1 {
		t.Errorf("3 changes and a marker led to %d writes: %+v", len(writes), writes)
	}
}

// TestStopIsQuick asks an Isthmus to end, which gives its lease back, so that
// the next one need not wait for it to expire.
func TestStopIsQuick(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.AddMany("many", 5)
	b := api.Bridge(registry, "stop")
	leader, standby := pair(t, api, b)
	api.Settle(b)
	before, err := api.holder(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holder, err := api.holder(b); err != nil || holder == before {
		t.Errorf("the lease is still held by %q, which has ended (%v)", holder, err)
	}
	api.Settle(b)
	if len(api.WritesBy(standby.user, b.namespace)) == 0 {
		t.Error("the standby has not taken over")
	}
	api.MustHaveDeleted(b.namespace)
}
