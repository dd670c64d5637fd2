package istio_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// mostWrites is how many a repair may take: the ownership, what is said, and what
// nobody owns.
const mostWrites = 3

// law is a property's test as those see it who wait for something.
type law struct {
	*testing.T
	check *rapid.T
}

// Fatalf ends the attempt, and not the test, so that a smaller one is looked for.
func (l law) Fatalf(format string, arguments ...any) { l.check.Fatalf(format, arguments...) }

// TestAnyObjectIsApplied has objects that any managers have written, of any
// content that the API server takes, handed over, and then written once more.
// What Isthmus wants is reached each time, and then it writes no more.
func TestAnyObjectIsApplied(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "any")
	i := serve(t, api, b)
	registry.AddWeb("model", "10.0.0.1", "10.0.0.2")
	want := normal(api.awaitEndpoints(b.namespace, b.host("model"), 2))
	objects, checks := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		l, names := law{t, rt}, map[string]string{}
		checks++
		for range rapid.IntRange(1, 10).Draw(rt, "objects") {
			objects++
			service := fmt.Sprintf("any-%d", objects)
			names[service] = b.host(service)
			api.drawHistory(rt, b.namespace, names[service])
		}
		for service := range names {
			registry.AddWeb(service, "10.0.0.1", "10.0.0.2")
		}
		for _, name := range names {
			i.awaitRejection(l, name, "hand it over")
		}
		for _, name := range names {
			api.label(b.namespace, name, handedOver(b))
		}
		for _, name := range names {
			api.reached(l, b.namespace, name, want)
		}
		for _, name := range names {
			if err := api.drawWrite(rt, b.namespace, name); err != nil {
				rt.Fatalf("an edit of %s: %v", name, err)
			}
		}
		for _, name := range names {
			api.reached(l, b.namespace, name, want)
		}
	})
	api.awaitMarker(b)
	before := api.WritesBy(i.user, b.namespace)
	api.awaitMarker(b)
	if more := api.WritesBy(i.user, b.namespace)[len(before):]; len(more) != 1 {
		t.Errorf("at rest it wrote %+v", more)
	}
	applied := map[string]int{}
	for _, w := range api.own(b.namespace) {
		applied[w.Name]++
		if applied[w.Name] > 2*mostWrites {
			t.Errorf("%s was written %d times", w.Name, applied[w.Name])
		}
	}
	t.Logf("%d objects in %d checks, by %d writes, of which %d were accepted", objects, checks, len(before), len(api.own(b.namespace)))
}

// drawHistory has some managers create and change an object without our labels.
func (a *api) drawHistory(t *rapid.T, namespace, name string) {
	o := &unstructured.Unstructured{Object: fields{
		"apiVersion": rapid.SampledFrom([]string{"networking.istio.io/v1", "networking.istio.io/v1alpha3"}).Draw(t, "version"), "kind": "ServiceEntry",
		"metadata": fields{"name": name, "namespace": namespace}, "spec": kubeapi.DrawSpec(t, name),
	}}
	var err error
	if rapid.Bool().Draw(t, "applied first") {
		o.SetAPIVersion("networking.istio.io/v1")
		err = a.client.As(drawManager(t)).Apply(a.t.Context(), cluster.ServiceEntries, o)
	} else {
		err = a.client.As(drawManager(t)).Create(a.t.Context(), o, "serviceentries")
	}
	for range rapid.IntRange(0, 2).Draw(t, "more writes") {
		if err == nil {
			err = a.drawWrite(t, namespace, name)
		}
	}
	if err != nil {
		t.Fatalf("an object that is to be handed over: %v", err)
	}
}

func drawManager(t *rapid.T) string {
	return rapid.SampledFrom([]string{"servicecenter-istio", "kubectl-edit", "argocd", "isthmus"}).Draw(t, "manager")
}

// drawWrite has a manager change the specification of an object, perhaps without
// a trace of who owns what.
func (a *api) drawWrite(t *rapid.T, namespace, name string) error {
	by, spec := a.client.As(drawManager(t)), kubeapi.DrawSpec(t, name)
	forget := rapid.IntRange(0, 4).Draw(t, "forget owners") == 0
	for {
		o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
		if err != nil {
			return err
		}
		o.Object["spec"] = spec
		if forget {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		}
		if err := by.Update(a.t.Context(), cluster.ServiceEntries, o); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// reached waits until an object is as that of the model.
func (a *api) reached(l law, namespace, name string, want fields) {
	l.Helper()
	await(l, name+" to be as it should be", func() error {
		o, err := a.client.Get(l.Context(), cluster.ServiceEntries, namespace, name)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, normal(o)); diff != "" {
			return fmt.Errorf("it is not (-):\n%s\n%v", diff, o.GetManagedFields())
		}
		return nil
	})
}

// normal is the specification of an object, without what differs between two
// services that have the same instances.
func normal(o *unstructured.Unstructured) fields {
	spec := entry{o.DeepCopy()}.spec()
	if fmt.Sprint(spec["hosts"]) == fmt.Sprint([]any{o.GetName()}) {
		spec["hosts"] = "its own"
	}
	for i := range (entry{o}).list("endpoints") {
		list, _ := spec["endpoints"].([]any)
		endpoint, _ := list[i].(fields)
		if labels, _ := endpoint["labels"].(fields); labels["serviceCenterInstanceId"] != nil {
			labels["serviceCenterInstanceId"] = "its own"
		}
	}
	list, _ := spec["ports"].([]any)
	for _, port := range list {
		if port, ok := port.(fields); ok && port["name"] != "" { // kept from when it was handed over
			port["name"] = "its own"
		}
	}
	return spec
}
