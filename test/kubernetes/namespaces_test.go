package kubernetes_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
)

const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %s, name: reader}
rules:
- {apiGroups: [""], resources: [services, pods], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [networking.istio.io], resources: [serviceentries, workloadentries, workloadgroups, sidecars], verbs: [get, list, watch]}
`

const roleIsReaders = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %s, name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: reader, apiGroup: rbac.authorization.k8s.io}]
`

// A source reads some namespaces with rights in these alone. Objects of others are not
// read, and one namespace's list says nothing of another's objects.
func TestNamespacesAreReadWithRightsThere(t *testing.T) {
	t.Parallel()
	c := own(t)
	client := connect(t, c)
	apply := func(kind schema.GroupVersionResource, manifest string, args ...any) {
		t.Helper()
		if err := client.Apply(t.Context(), kind, object(t, manifest, args...)); err != nil {
			t.Fatal(err)
		}
	}
	group := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
	}
	for _, namespace := range []string{"one", "two", "other"} {
		if err := client.Namespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		apply(services, webService, namespace)
		apply(slicesOf, webSlice, namespace)
	}
	for _, namespace := range []string{"one", "two"} {
		apply(group("roles"), role, namespace)
		apply(group("rolebindings"), roleIsReaders, namespace)
	}
	m := mirror(t, kubeconfig(t, c.API, "reader"), func(c *kubernetes.Config) { c.Namespaces = []string{"one", "two"} })
	m.awaitState(source.StateLive)
	for namespace, want := range map[string]bool{"one": true, "two": true, "other": false} {
		if r := m.records(namespace); has(r, "10.1.0.1") != want {
			t.Errorf("of %s there is %v", namespace, r)
		}
	}
	m.awaitRejected("nodes", "allow list and watch")

	before := m.uids("two")
	if err := client.Delete(t.Context(), services, "one", "web"); err != nil {
		t.Fatal(err)
	}
	await(t, "the Service is gone", func() error {
		if r := m.records("one"); len(r) > 0 {
			return fmt.Errorf("there is %v", r)
		}
		return nil
	})
	c.API.Kill() // all is listed anew
	if err := c.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.awaitState(source.StateLive)
	apply(services, webService, "one")
	await(t, "the Service is back", func() error {
		if r := m.records("one"); !has(r, "10.1.0.1") {
			return fmt.Errorf("there is %v", r)
		}
		return nil
	})
	m.mustHave(before, "two")
	if r := m.records("other"); len(r) > 0 {
		t.Errorf("of the other namespace there is %v", r)
	}

	if err := client.Delete(t.Context(), group("rolebindings"), "two", "reader"); err != nil {
		t.Fatal(err)
	}
	c.API.Kill() // a watch that runs goes on without rights
	if err := c.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.awaitState(source.StateStale)
	m.mustHave(before, "two")
}
