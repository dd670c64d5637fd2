package istio_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestTwoBridgesDoNotFight has two installations mirror one registry into one
// namespace. Who was first keeps the names, and the other leaves them alone.
func TestTwoBridgesDoNotFight(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	api.Namespace("bridges")
	registry.AddMany("many", 20)
	a := bridge{registry: registry, namespace: "bridges", instance: "a", user: "a"}
	b := bridge{registry: registry, namespace: "bridges", instance: "b", user: "b"}
	serve(t, api, a)
	api.AwaitMirror(a)
	other := serve(t, api, b)
	other.AwaitState("live")
	before := api.own(b.namespace)
	registry.Remove("many-1", registry.Services()["many-1"][0])
	registry.Drop("many-2")
	registry.Add("many-3", "10.9.9.9:80")
	api.Settle(a)
	await(t, "the second to have nothing", func() error {
		got, err := api.Mirrored(b.namespace, "b")
		if err == nil && len(got) > 0 {
			err = fmt.Errorf("it has %v", got)
		}
		return err
	})
	api.Settle(a)
	api.MustHaveDeletedAtMost(b.namespace, "many-2")
	// The second may hear of a drop a little later than the first, and find the
	// name free for as long.
	if writes := api.own(b.namespace)[len(before):]; len(writes) > 3+2+2 { // changes, markers, and that
		t.Errorf("3 changes and 2 markers led to %d writes: %v", len(writes), writes)
	}
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
	for i := range 2 {
		name := "both-" + strconv.Itoa(i)
		b := bridge{registry: registry, namespace: name, instance: name, user: name}
		api.Namespace(name)
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
