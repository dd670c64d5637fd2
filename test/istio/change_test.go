package istio_test

import "testing"

// TestRegistryChangesReachCalls follows instances from the registry to the calls
// of a client that knows only istiod.
func TestRegistryChangesReachCalls(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	one := startBackend(t, "one", "127.0.0.1:"+port)
	two := startBackend(t, "two", "127.0.0.2:"+port)
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("reviews", one.Addr.String())
	b := api.Bridge(registry, "change")
	serve(t, api, b)
	client := dial(t, istiod, b.namespace, b.host("reviews")+":"+port)
	client.AwaitAnswers("one")
	traffic := client.KeepCalling()

	registry.Add("reviews", two.Addr.String())
	client.AwaitAnswers("one", "two")

	registry.Remove("reviews", one.Addr.String())
	client.AwaitAnswers("two")
	traffic.AwaitNext() // one of its calls may be on its way
	before := one.Calls()
	api.Settle(b)
	client.AwaitAnswers("two")
	if got := one.Calls() - before; got != 0 {
		t.Errorf("%d calls went to an instance that is gone", got)
	}
	traffic.MustNotHaveFailed()

	registry.Drop("reviews")
	api.Settle(b)
	client.AwaitAnyFailure()
	api.MustHaveDeleted(b.namespace, "reviews")
}
