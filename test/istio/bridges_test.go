package istio_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestTwoBridgesDoNotFight has two installations mirror one registry into one
// namespace. Who is first with a name keeps it, and the other leaves it alone.
func TestTwoBridgesDoNotFight(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	namespace := api.NewNamespace("bridges")
	registry.AddMany("many", 20)
	a := bridge{registry: registry, namespace: namespace, instance: namespace + "-a", user: "a"}
	b := bridge{registry: registry, namespace: namespace, instance: namespace + "-b", user: "b"}
	serve(t, api, a)
	api.AwaitMirror(a)
	serve(t, api, b).AwaitRejection(b.host("many-0"), "")
	before := len(api.own(namespace))

	registry.Remove("many-1", registry.Services()["many-1"][0])
	registry.Add("many-3", "10.9.9.9:80")
	api.SettleTogether(a, b)
	registry.Drop("many-2")
	api.SettleTogether(a, b)
	api.MustHaveDeletedAtMost(namespace, "many-2")
	// One of them may see the drop a little later than the other, and find
	// the name free for as long.
	if writes := api.own(namespace)[before:]; len(writes) > 3+2+2 { // changes, markers, and that
		t.Errorf("3 changes and 2 markers led to %d writes: %v", len(writes), writes)
	}
}

// SettleTogether waits until two instances together have written what is registered,
// and then something registered after that.
func (a *api) SettleTogether(one, two bridge) {
	a.t.Helper()
	a.awaitTogether(one, two)
	a.markers++
	one.registry.Add("marker-"+strconv.Itoa(a.markers), "10.0.0.1:80")
	a.awaitTogether(one, two)
}

func (a *api) awaitTogether(one, two bridge) {
	a.t.Helper()
	await(a.t, "what is registered in the API server", func() error {
		got, err := a.Mirrored(one.namespace, one.instance)
		if err != nil {
			return err
		}
		others, err := a.Mirrored(two.namespace, two.instance)
		if err != nil {
			return err
		}
		for service, addresses := range others {
			got[service] = append(got[service], addresses...)
		}
		if diff := cmp.Diff(one.registry.Services(), got); diff != "" {
			return fmt.Errorf("what is registered (-) is not what was written (+):\n%s", diff)
		}
		return nil
	})
}

// own are the changes of objects that were made by Isthmus.
func (a *api) own(namespace string) (changes []cluster.Write) {
	for _, w := range a.Writes(namespace) {
		if w.User != cluster.Admin && w.Subresource == "" && w.Changed() {
			changes = append(changes, w)
		}
	}
	return changes
}

// TestTwoBridgesOnOneRegistry has two installations mirror one registry into a
// namespace each.
func TestTwoBridgesOnOneRegistry(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.AddMany("many", 20)
	var bridges []bridge
	for _, name := range []string{"both-one", "both-two"} {
		b := api.Bridge(registry, name)
		b.user = name
		serve(t, api, b)
		bridges = append(bridges, b)
	}
	for _, b := range bridges {
		api.Settle(b)
	}
	registry.Drop("many-2")
	registry.Add("many-3", "10.9.9.9:80")
	for _, b := range bridges {
		api.Settle(b)
		api.MustHaveDeleted(b.namespace, "many-2")
	}
}
