package kubernetes_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

var (
	roles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
)

const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %s, name: reader}
rules:
- {apiGroups: [""], resources: [services, pods], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
- {apiGroups: [networking.istio.io], resources: [%s workloadentries, workloadgroups, sidecars], verbs: [list, watch]}
`

const roleIsReaders = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %s, name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: reader, apiGroup: rbac.authorization.k8s.io}]
`

const entryOf = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {namespace: %s, name: %s}
spec: {hosts: [entry.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.8.0.1}]}
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
	for _, namespace := range []string{"one", "two", "other"} {
		if err := client.Namespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		apply(services, webService, namespace)
		apply(slicesOf, webSlice, namespace)
	}
	for _, namespace := range []string{"one", "two"} {
		apply(roles, role, namespace, "serviceentries,")
		apply(roleBindings, roleIsReaders, namespace)
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

	if err := client.Delete(t.Context(), roleBindings, "two", "reader"); err != nil {
		t.Fatal(err)
	}
	c.API.Kill() // a watch that runs goes on without rights
	if err := c.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.awaitState(source.StateStale)
	m.mustHave(before, "two")
}

// One namespace's Role lacks a kind that need not be read. What goes in the other one while
// Isthmus does not run goes, and what is stored of that namespace stays until it can be read.
func TestNamespaceThatCannotBeReadKeepsItsOwnAlone(t *testing.T) {
	t.Parallel()
	c := own(t)
	client, ctx := connect(t, c), t.Context()
	apply := func(kind schema.GroupVersionResource, manifest string, args ...any) {
		t.Helper()
		if err := client.Apply(ctx, kind, object(t, manifest, args...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"one", "two"} {
		if err := client.Namespace(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		apply(roles, role, namespace, "serviceentries,")
		apply(roleBindings, roleIsReaders, namespace)
		for _, name := range []string{"stays", "goes"} {
			apply(cluster.ServiceEntries, entryOf, namespace, name)
		}
	}
	config := kubeconfig(t, c.API, "reader")
	restricted := func(c *kubernetes.Config) { c.Namespaces = []string{"one", "two"} }
	mayRead := func(namespace string, want bool) {
		t.Helper()
		await(t, fmt.Sprintf("whether the reader may read %s: %t", namespace, want), func() error {
			may, err := client.Allows(ctx, cluster.Access{
				User: "reader", Verb: "list", Group: cluster.ServiceEntries.Group, Resource: cluster.ServiceEntries.Resource, Namespace: namespace,
			})
			if err == nil && may != want {
				err = fmt.Errorf("it is %t", may)
			}
			return err
		})
	}
	mayRead("one", true) // else the source does without
	mayRead("two", true)
	m := mirror(t, config, restricted)
	m.awaitState(source.StateLive)
	one, two := m.uids("one"), m.uids("two")
	if len(one) != 4 || len(two) != 4 {
		t.Fatalf("there is %v and %v", one, two)
	}
	m.stop()

	apply(roles, role, "two", "")
	mayRead("two", false)
	for _, namespace := range []string{"one", "two"} {
		if err := client.Delete(ctx, cluster.ServiceEntries, namespace, "goes"); err != nil {
			t.Fatal(err)
		}
	}
	m = mirrorInto(t, m.store, config, restricted)
	m.awaitState(source.StateLive)
	m.awaitRejected("serviceentries of two", "allow list and watch, or set istio: false")
	m.mustHave(two, "two")
	m.mustHaveLost(one, "one")

	apply(roles, role, "two", "serviceentries,")
	m.awaitRejected("serviceentries of two", "")
	m.mustHaveLost(one, "one")
	m.mustHaveLost(two, "two")
}

// mustHaveLost finds whether all but the ServiceEntry that goes is as it was.
func (m *mirrored) mustHaveLost(before map[string]model.UID, namespace string) {
	m.t.Helper()
	want := maps.Clone(before)
	maps.DeleteFunc(want, func(name string, _ model.UID) bool { return strings.Contains(name, " goes") })
	if diff := cmp.Diff(want, m.uids(namespace)); diff != "" {
		m.t.Errorf("of %s (-want +got):\n%s", namespace, diff)
	}
}
