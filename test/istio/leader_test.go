package istio_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// pair starts two replicas of one Isthmus: the first leads.
func pair(t *testing.T, api *api, b bridge) (leader, standby *isthmus) {
	t.Helper()
	b.user = "first"
	leader = serve(t, api, b)
	await(t, "the first replica to lead", func() error {
		holder, err := api.holder(b)
		if err == nil && holder == "" {
			err = errors.New("nobody does")
		}
		return err
	})
	b.user = "second"
	standby = serve(t, api, b)
	standby.AwaitWriter("standby")
	return leader, standby
}

// holder is who holds the lease.
func (a *api) holder(b bridge) (string, error) {
	lease, err := a.client.Get(a.t.Context(), cluster.Leases, cluster.RootNamespace, b.withDefaults().instance)
	if err != nil {
		return "", err
	}
	holder, _, err := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder, err
}

// TestLeaderIsKilledInMidPush has the standby finish what a killed leader began.
func TestLeaderIsKilledInMidPush(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.AddMany("many", 50)
	b := api.Bridge(registry, "leader-killed")
	leader, standby := pair(t, api, b)
	api.Settle(b)
	if writes := api.WritesBy(standby.user, b.namespace); len(writes) > 0 {
		t.Fatalf("the standby wrote: %v", writes)
	}
	before := len(api.WritesBy(leader.user, b.namespace))
	registry.AddMany("more", 200)
	registry.Drop("many-3")
	api.AwaitWrites(leader.user, b.namespace, before+20)
	leader.Kill()
	registry.Drop("many-4")
	registry.Remove("many-5", registry.Services()["many-5"][0])
	api.Settle(b)
	// The server may have deleted many-3 for the leader and found nobody to answer to, which its
	// log does not count.
	api.MustHaveDeletedAtMost(b.namespace, "many-3", "many-4")

	// The one that was killed comes back as a standby and changes nothing.
	before = len(api.WritesBy(leader.user, b.namespace))
	leader.Restart()
	leader.AwaitWriter("standby")
	api.Settle(b)
	if writes := api.WritesBy(leader.user, b.namespace)[before:]; len(writes) > 0 {
		t.Errorf("come back as a standby it wrote: %v", writes)
	}
	api.MustHaveDeletedAtMost(b.namespace, "many-3", "many-4")
}

// TestPausedLeaderUndoesNothing stops a leader in mid-push, has another take
// its place and write what is registered by then, and lets the first go on.
func TestPausedLeaderUndoesNothing(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.AddMany("many", 50)
	b := api.Bridge(registry, "leader-paused")
	leader, standby := pair(t, api, b)
	api.Settle(b)
	before := len(api.WritesBy(leader.user, b.namespace))
	registry.AddMany("more", 200)
	api.AwaitWrites(leader.user, b.namespace, before+20)
	if err := leader.Freeze(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // some of which it wrote, and some it was about to
		registry.Drop(fmt.Sprintf("more-%d", i))
	}
	for i := 100; i < 200; i++ {
		registry.Add(fmt.Sprintf("more-%d", i), "10.9.9.9:80")
	}
	api.Settle(b)
	if len(api.WritesBy(standby.user, b.namespace)) == 0 {
		t.Fatal("the standby has not taken over")
	}

	resumed := time.Now()
	if err := leader.Thaw(); err != nil {
		t.Fatal(err)
	}
	leader.AwaitWriter("standby")
	api.Settle(b)
	api.Settle(b)
	var late []string
	for _, w := range api.WritesBy(leader.user, b.namespace) {
		if w.At.After(resumed) && w.Changed() {
			late = append(late, fmt.Sprintf("%+v", w))
		}
	}
	// A request that was past the fence when the process stopped is sent when the process goes
	// on, and the standby corrects it. Without the fence there would be dozens.
	if len(late) > 3 {
		t.Errorf("the deposed leader has written %d times: %v", len(late), late)
	}
}
