package kubernetes_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// own starts a cluster for one test.
func own(t testing.TB) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), programs, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

func kubeconfig(t testing.TB, api *cluster.APIServer, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := api.WriteKubeconfig(path, user); err != nil {
		t.Fatal(err)
	}
	return path
}

// While the API server is away the source says so, and everything stays. What changed
// meanwhile, or just before, is there when it is back.
func TestAPIServerIsKilled(t *testing.T) {
	t.Parallel()
	c := own(t)
	client := connect(t, c)
	if err := client.Namespace(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, steadyObjects, "kept") {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	m := mirror(t, kubeconfig(t, c.API, cluster.Admin))
	m.awaitState(source.StateLive)
	before := m.uids("kept")
	if len(before) != 3 {
		t.Fatalf("there is %v", before)
	}
	for range 2 {
		c.API.Kill()
		if s := m.awaitState(source.StateStale); !strings.Contains(s.Reason, "trying again within") {
			t.Errorf("the reason is %q", s.Reason)
		}
		m.mustHave(before, "kept")
		if err := c.API.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.awaitState(source.StateLive)
		m.mustHave(before, "kept")
	}
	if err := client.Delete(t.Context(), services, "kept", "steady"); err != nil {
		t.Fatal(err)
	}
	await(t, "the Service is gone", func() error {
		if r := m.records("kept"); len(r) > 0 {
			return errors.New(fmt.Sprint(r))
		}
		return nil
	})
}

const clusterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- apiGroups: [""]
  resources: [services, nodes]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
%s`

const mayReadIstio = `
- apiGroups: [networking.istio.io]
  resources: [serviceentries, workloadentries, workloadgroups, sidecars]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
`

const roleBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: reader, apiGroup: rbac.authorization.k8s.io}]
`

var (
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	bindings     = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const lateEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {namespace: rights, name: late}
spec: {hosts: [late.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.8.0.1}]}
`

// A kind that may not be read, or that the API server does not have, is reported and
// holds up nothing. It is read as soon as it can be, and what was read of it stays when
// it cannot be read any more.
func TestKindsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := own(t)
	client := connect(t, c)
	apply := func(kind schema.GroupVersionResource, manifest string, args ...any) {
		t.Helper()
		if err := client.Apply(t.Context(), kind, object(t, manifest, args...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Namespace(t.Context(), "rights"); err != nil {
		t.Fatal(err)
	}
	sidecars, err := client.Get(t.Context(), definitions, "", "sidecars.networking.istio.io")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), definitions, "", sidecars.GetName()); err != nil {
		t.Fatal(err)
	}
	apply(clusterRoles, clusterRole, "")
	apply(bindings, roleBinding)
	apply(cluster.ServiceEntries, lateEntry)
	apply(services, webService, "rights")
	apply(slicesOf, webSlice, "rights")

	m := mirror(t, kubeconfig(t, c.API, "reader"))
	m.awaitState(source.StateLive)
	if r := m.records("rights"); !has(r, "10.1.0.1") {
		t.Errorf("the Service is not there: %v", r)
	}
	m.awaitRejected("serviceentries", "allow list and watch, or set istio: false")
	m.awaitRejected("pods", "allow list and watch, or set pods: false")

	apply(clusterRoles, clusterRole, mayReadIstio)
	await(t, "the ServiceEntry", func() error {
		if _, there := m.records("rights")["Service late"]; !there {
			return fmt.Errorf("there is %v", m.records("rights"))
		}
		return nil
	})
	m.awaitRejected("sidecars", "install its custom resource definition")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
		delete(sidecars.Object["metadata"].(map[string]any), field) //nolint:forcetypeassert // an object has one
	}
	delete(sidecars.Object, "status")
	await(t, "the definition can be created again", func() error { return client.Apply(t.Context(), definitions, sidecars) })
	m.awaitRejected("sidecars", "")

	uids := m.uids("rights")
	apply(clusterRoles, clusterRole, "")
	c.API.Kill() // a watch that runs goes on without rights
	if err := c.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.awaitRejected("serviceentries", "allow list and watch, or set istio: false")
	m.mustHave(uids, "rights")
	m.awaitState(source.StateLive)
}
