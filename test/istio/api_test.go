package istio_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// api is an API server as a test sees it: what must work, works.
type api struct {
	t      *testing.T
	server *cluster.APIServer
	client *cluster.Client

	markers int // see Settle
}

func connect(t *testing.T, c *cluster.Cluster) *api {
	t.Helper()
	client, err := c.API.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &api{t: t, server: c.API, client: client}
}

// NewNamespace creates a namespace of a name that no other test, and no other
// run of the same one, has.
func (a *api) NewNamespace(prefix string) (name string) {
	a.t.Helper()
	name = prefix + "-" + strings.ToLower(rand.Text()[:6])
	a.Namespace(name)
	return name
}

// Namespace creates a namespace.
func (a *api) Namespace(name string) {
	a.t.Helper()
	if err := a.client.Namespace(a.t.Context(), name); err != nil {
		a.t.Fatal(err)
	}
}

// Apply applies a manifest.
func (a *api) Apply(kind schema.GroupVersionResource, manifest string) {
	a.t.Helper()
	if err := apply(a.t.Context(), a.client, kind, manifest); err != nil {
		a.t.Fatal(err)
	}
}

// WritesBy are a user's writes to Istio's objects in a namespace so far. Istiod
// writes as well: it keeps the addresses it allots in the status.
func (a *api) WritesBy(user, namespace string) []cluster.Write {
	a.t.Helper()
	return slices.DeleteFunc(a.Writes(namespace), func(w cluster.Write) bool { return w.User != user })
}

// Writes are everybody's.
func (a *api) Writes(namespace string) []cluster.Write {
	a.t.Helper()
	writes, err := a.server.Writes(namespace)
	if err != nil {
		a.t.Fatal(err)
	}
	return writes
}

// Spec is the specification of an object.
func (a *api) Spec(kind schema.GroupVersionResource, namespace, name string) map[string]any {
	a.t.Helper()
	object, err := a.client.Get(a.t.Context(), kind, namespace, name)
	if err != nil {
		a.t.Fatal(err)
	}
	spec, _ := object.Object["spec"].(map[string]any)
	return spec
}

// Edit changes an object as "kubectl edit" does.
func (a *api) Edit(kind schema.GroupVersionResource, namespace, name string, change func(object map[string]any)) {
	a.t.Helper()
	await(a.t, "an edit of "+name, func() error {
		object, err := a.client.Get(a.t.Context(), kind, namespace, name)
		if err != nil {
			return err
		}
		change(object.Object)
		return a.client.Update(a.t.Context(), kind, object)
	})
}
