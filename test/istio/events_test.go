package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

var eventsOf = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// events returns the Events about a ServiceEntry, which have its UID, by their names.
func (a *api) events(namespace, name string) (map[string]*unstructured.Unstructured, error) {
	entry, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
	if err != nil {
		return nil, err
	}
	list, err := a.client.List(a.t.Context(), eventsOf, namespace, "")
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list {
		if uid, _, _ := unstructured.NestedString(list[i].Object, "involvedObject", "uid"); uid == string(entry.GetUID()) {
			found[list[i].GetName()] = &list[i]
		}
	}
	return found, nil
}

// awaitEvents waits for the Events about a ServiceEntry, which begin with texts, in order.
func (a *api) awaitEvents(namespace, name string, want ...string) (found map[string]*unstructured.Unstructured) {
	a.t.Helper()
	await(a.t, "the Events about "+name, func() (err error) {
		if found, err = a.events(namespace, name); err != nil {
			return err
		}
		var list []string
		for _, e := range found {
			list = append(list, fmt.Sprintf("%s %s x%v: %s", e.Object["type"], e.Object["reason"], e.Object["count"], e.Object["message"]))
		}
		slices.Sort(list)
		if !slices.EqualFunc(list, want, strings.HasPrefix) {
			return fmt.Errorf("they are %q, want %q", list, want)
		}
		return nil
	})
	return found
}

// An object that Isthmus cannot write has an Event with the reason: a foreign one of the
// same name, and an own one that another writer keeps changing. A new leader repeats none. Once
// the object is handed over it has another Event.
func TestObjectsThatAreNotWrittenHaveEvents(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "events")
	registry.AddWeb("taken", "10.0.0.1")
	registry.AddWeb("fought", "10.0.0.1")
	api.createAsEarlierBridge(b.namespace, b.host("taken"))
	leader, standby := pair(t, api, b)

	taken := fmt.Sprintf("Warning NameTaken x1: ServiceEntry %s/%s exists, and it lacks the labels of this Isthmus", b.namespace, b.host("taken"))
	before := api.awaitEvents(b.namespace, b.host("taken"), taken)
	api.awaitWritten(b.namespace, b.host("fought"))
	for range 5 {
		before := api.generation(b.namespace, b.host("fought"))
		api.edit(b.namespace, b.host("fought"))
		await(t, "the object to be restored", func() error {
			if now := api.generation(b.namespace, b.host("fought")); now < before+2 {
				return fmt.Errorf("it has generation %d, after %d", now, before)
			}
			return nil
		})
	}
	api.edit(b.namespace, b.host("fought"))
	leader.AwaitRejection(b.host("fought"), "another writer keeps changing it")
	api.awaitEvents(b.namespace, b.host("fought"), "Warning Conflict x1: ")

	leader.Kill()
	standby.AwaitWriter("writing")
	api.createAsEarlierBridge(b.namespace, b.host("late"))
	registry.AddWeb("late", "10.0.0.1")
	api.awaitEvents(b.namespace, b.host("late"), "Warning NameTaken x1: ") // after those of the first keys
	if diff := cmp.Diff(before, api.awaitEvents(b.namespace, b.host("taken"), taken)); diff != "" {
		t.Errorf("the new leader has changed an Event (-before +after)\n%s", diff)
	}
	api.label(b.namespace, b.host("taken"), handedOver(b))
	api.awaitEvents(b.namespace, b.host("taken"), "Normal UpToDate x1: ", taken)
}

// generation counts the changes of the specification of a ServiceEntry.
func (a *api) generation(namespace, name string) int64 {
	a.t.Helper()
	o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
	if err != nil {
		a.t.Fatal(err)
	}
	return o.GetGeneration()
}

// edit changes the specification of a ServiceEntry by hand.
func (a *api) edit(namespace, name string) {
	a.t.Helper()
	a.Edit(cluster.ServiceEntries, namespace, name, func(o map[string]any) {
		if err := unstructured.SetNestedField(o, "MESH_EXTERNAL", "spec", "location"); err != nil {
			a.t.Fatal(err)
		}
	})
}
