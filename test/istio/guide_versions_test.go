package istio_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// versions are all that the API server has ever had of some objects.
type versions struct {
	t    *testing.T
	need map[string][]string // the addresses that an object always has, by name

	mu      sync.Mutex
	seen    map[string]int
	missing []string
}

// follow looks at each version of the objects of the root namespace until the test ends.
func follow(t *testing.T, a *api, need map[string][]string) *versions {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, err := a.client.Watch(ctx, cluster.ServiceEntries, cluster.RootNamespace)
	if err != nil {
		t.Fatal(err)
	}
	v := &versions{t: t, need: need, seen: map[string]int{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			v.look(e)
		}
	}()
	t.Cleanup(func() { events.Stop(); cancel(); <-ended })
	return v
}

func (v *versions) look(e watch.Event) {
	o, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Type == watch.Error {
		v.missing = append(v.missing, fmt.Sprintf("the watch has ended: %v", o.Object))
		return
	}
	v.seen[o.GetName()]++
	for _, address := range v.need[o.GetName()] {
		if e.Type == watch.Deleted || !slices.ContainsFunc(entry{o}.list("endpoints"), func(endpoint any) bool {
			fields, _ := endpoint.(fields)
			return fields["address"] == address
		}) {
			v.missing = append(v.missing, fmt.Sprintf("%s of %s in version %s (%s)", address, o.GetName(), o.GetResourceVersion(), e.Type))
		}
	}
}

// mustBeWhole is that no version so far lacked an endpoint.
func (v *versions) mustBeWhole(step string) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.need {
		if v.seen[name] == 0 {
			v.t.Errorf("by %q no version of %s was seen", step, name)
		}
	}
	if len(v.missing) > 0 {
		v.t.Errorf("by %q there were missing: %q", step, v.missing)
	}
}

// deployment is how many replicas a deployment of the root namespace is to have.
func (a *api) deployment(name string) int64 {
	a.t.Helper()
	replicas, _, _ := unstructured.NestedInt64(map[string]any{"spec": a.Spec(schema.GroupVersionResource{
		Group: "apps", Version: "v1", Resource: "deployments",
	}, cluster.RootNamespace, name)}, "spec", "replicas")
	return replicas
}
