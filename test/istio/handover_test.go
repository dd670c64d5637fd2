package istio_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// ofEarlierBridge is an object as servicecomb-service-center-istio writes it:
// without labels, with names of ports in capitals, and with an instance that has
// gone while it did not run.
const ofEarlierBridge = `
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {name: HTTP-8080, number: 8080, targetPort: 8080, protocol: HTTP}
  - {name: HTTP-7070, number: 7070, targetPort: 7070, protocol: HTTP}
  endpoints:
  - {address: 10.0.9.9, ports: {HTTP-8080: 8080, HTTP-7070: 7070}, labels: {name: gone, instanceId: 0badc0de}}
  - {address: 10.0.0.1, ports: {HTTP-8080: 8080, HTTP-7070: 7070}, labels: {name: host, instanceId: 5afe}}
`

// TestObjectsOfEarlierBridgeAreHandedOver has objects that another client has
// created and updated. When they get the labels, each is at once what Isthmus
// would have created itself, but for the names of its ports, and changes from then on as any other.
func TestObjectsOfEarlierBridgeAreHandedOver(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "handover")
	const count = 20
	var longest time.Duration
	for i := range count {
		service := fmt.Sprintf("web-%d", i)
		registry.AddWeb(service, "10.0.0.1", "10.0.0.2")
		api.createAsEarlierBridge(b.namespace, b.host(service))
	}
	i := serve(t, api, b)
	i.AwaitRejection(b.host("web-0"), "hand it over")
	before := api.own(b.namespace)

	for n := range count {
		name := b.host(fmt.Sprintf("web-%d", n))
		began := time.Now()
		api.label(b.namespace, name, handedOver(b))
		o := api.awaitWritten(b.namespace, name)
		longest = max(longest, time.Since(began))
		if got := o.GetGeneration(); got != 1+1 {
			t.Errorf("%s: the specification was changed %d times", name, got-1)
		}
		mustBeOnlyOurs(t, o)
		api.mustBeAsIfCreated(b.namespace, o)
	}
	t.Logf("the longest handover took %s", longest)
	// The ownership, the specification, and once more since it was deleted.
	if writes := api.own(b.namespace)[len(before):]; len(writes) != 3*count {
		t.Errorf("%d objects were handed over by %d writes", count, len(writes)-count)
	}
	api.awaitMarker(b)

	// A change that comes later is a single write, also one of the ports.
	api.label(b.namespace, b.host("web-0"), `{"team":"shop"}`)
	before = api.WritesBy(i.user, b.namespace)
	registry.Remove("web-0", "10.0.0.1", "10.0.0.2")
	registry.instances["web-0"]["10.0.0.3"] = registry.RegisterInstance(registry.ids["web-0"], servicecenter.Instance{
		HostName: "host", Endpoints: []string{"grpc://10.0.0.3:8080"},
	})
	await(t, "the object to follow the registry", func() error {
		if got := fmt.Sprint(api.Spec(cluster.ServiceEntries, b.namespace, b.host("web-0"))["ports"]); !strings.Contains(got, "grpc-8080") {
			return errors.New(got)
		}
		return nil
	})
	api.awaitMarker(b)
	for _, w := range api.WritesBy(i.user, b.namespace)[len(before):] {
		if w.Verb != "patch" || !w.Changed() {
			t.Errorf("a later change led to %+v", w)
		}
	}
}

// AddWeb registers instances of a service that have a REST and a highway port each.
func (r *registry) AddWeb(service string, addresses ...string) {
	r.add(service, addresses, "rest://%s:8080", "highway://%s:7070")
}

// createAsEarlierBridge creates an object and updates it, as that one did.
func (a *api) createAsEarlierBridge(namespace, name string) {
	a.t.Helper()
	o, err := object(fmt.Sprintf(ofEarlierBridge, name, namespace))
	if err != nil {
		a.t.Fatal(err)
	}
	earlier := a.client.As("servicecenter-istio")
	if err := earlier.Create(a.t.Context(), o, "serviceentries"); err != nil {
		a.t.Fatal(err)
	}
}

// handedOver are the labels that the guide for migration says to set.
func handedOver(b bridge) string {
	return `{"app.kubernetes.io/managed-by":"isthmus","isthmus.io/instance":"` + b.withDefaults().instance + `"}`
}

// label sets labels as "kubectl label" does.
func (a *api) label(namespace, name, labels string) {
	a.t.Helper()
	patch := `{"metadata":{"labels":` + labels + `}}`
	if err := a.client.As("kubectl-label").Patch(a.t.Context(), cluster.ServiceEntries, namespace, name, types.MergePatchType, patch); err != nil {
		a.t.Fatal(err)
	}
}

// awaitWritten waits until an object says which service it is of.
func (a *api) awaitWritten(namespace, name string) (o *unstructured.Unstructured) {
	a.t.Helper()
	await(a.t, name+" to be written", func() (err error) {
		if o, err = a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name); err != nil {
			return err
		}
		if o.GetAnnotations()["isthmus.io/service"] == "" {
			return fmt.Errorf("it is %v", o.Object)
		}
		return nil
	})
	return o
}

// mustBeAsIfCreated deletes an object and compares it with that which is created. Its
// ports have the names that they were handed over with.
func (a *api) mustBeAsIfCreated(namespace string, o *unstructured.Unstructured) {
	a.t.Helper()
	if err := a.client.Delete(a.t.Context(), cluster.ServiceEntries, namespace, o.GetName()); err != nil {
		a.t.Fatal(err)
	}
	const kept = "7070=HTTP-7070,8080=HTTP-8080"
	annotations, ports := o.GetAnnotations(), entry{o}.list("ports")
	if annotations["isthmus.io/port-names"] != kept || !strings.Contains(fmt.Sprint(ports), "HTTP-7070") || !strings.Contains(fmt.Sprint(ports), "HTTP-8080") {
		a.t.Errorf("%s has the ports %v (%v)", o.GetName(), ports, annotations)
	}
	delete(annotations, "isthmus.io/port-names")
	o.SetAnnotations(annotations)
	for i, name := range []string{"tcp-7070", "http-8080"} {
		if port, ok := ports[i].(fields); ok {
			port["name"] = name
		}
	}
	created := a.awaitWritten(namespace, o.GetName())
	if diff := cmp.Diff(said(created), said(o)); diff != "" {
		a.t.Errorf("%s is not as if it had been created (-):\n%s", o.GetName(), diff)
	}
}

// said is what Isthmus says of an object.
func said(o *unstructured.Unstructured) map[string]any {
	return map[string]any{"labels": o.GetLabels(), "annotations": o.GetAnnotations(), "spec": o.Object["spec"]}
}

// mustBeOnlyOurs is that nobody else owns anything in the specification.
func mustBeOnlyOurs(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for _, m := range o.GetManagedFields() {
		ours := m.Manager == "isthmus" && m.Operation == "Apply"
		if owns := strings.Contains(m.FieldsV1.GetRawString(), "f:spec"); owns != ours {
			t.Errorf("%s: %s (%s) owns %s", o.GetName(), m.Manager, m.Operation, m.FieldsV1.GetRawString())
		}
	}
}
