package istio_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestConsumersSeeWhatTheyUse follows who uses whom from the registry to what a
// client may call: a Sidecar is written, the API server and istiod take it, and
// istiod tells the workloads that it selects of nothing else.
func TestConsumersSeeWhatTheyUse(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cart := startBackend(t, "cart", "127.0.0.1:"+port)
	users := startBackend(t, "users", "127.0.0.2:"+port)
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("web")
	registry.Add("cart", cart.Addr.String())
	registry.Add("users", users.Addr.String())
	registry.Uses("web", "cart")
	b := api.Bridge(registry, "scope")
	b.scoped = true
	i := serve(t, api, b)
	api.Settle(b)
	host := func(service string) string { return b.namespace + "/" + b.host(service) }
	api.AwaitSidecar(b.namespace, b.host("web"), host("cart"))

	dialAs(t, istiod, "web", b.namespace, b.host("cart")+":"+port).AwaitAnswers("cart")
	dialAs(t, istiod, "other", b.namespace, b.host("users")+":"+port).AwaitAnswers("users")
	dialAs(t, istiod, "web", b.namespace, b.host("users")+":"+port).AwaitAnyFailure()
	if got := users.Calls(); got == 0 {
		t.Error("nobody saw the users")
	}

	registry.Uses("web", "users")
	api.AwaitSidecar(b.namespace, b.host("web"), host("cart"), host("users"))
	dialAs(t, istiod, "web", b.namespace, b.host("users")+":"+port).AwaitAnswers("users")

	registry.Drop("web")
	await(t, "the scope to go", func() error {
		objects, err := api.client.List(t.Context(), cluster.Sidecars, b.namespace, managedBy)
		if err == nil && len(objects) > 0 {
			err = fmt.Errorf("there is %s", objects[0].GetName())
		}
		return err
	})
	i.MustHaveRestored(0)
}

// AwaitSidecar waits until there is the scope of a workload, with these hosts.
func (a *api) AwaitSidecar(namespace, name string, hosts ...any) {
	a.t.Helper()
	await(a.t, "the scope "+name, func() error {
		object, err := a.client.Get(a.t.Context(), cluster.Sidecars, namespace, name)
		if err != nil {
			return err
		}
		spec, _ := object.Object["spec"].(map[string]any)
		want := []any{map[string]any{"hosts": hosts}}
		if diff := cmp.Diff(want, spec["egress"]); diff != "" {
			return fmt.Errorf("its hosts are not those wanted (-):\n%s", diff)
		}
		return nil
	})
}

// TestEditsOfScopesAreRepaired has a Sidecar changed in ways that server-side
// apply does not undo by itself.
func TestEditsOfScopesAreRepaired(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("web", "10.0.0.1:80")
	registry.Add("cart", "10.0.0.2:80")
	registry.Uses("web", "cart")
	b := api.Bridge(registry, "scope-edits")
	b.scoped = true
	i, name := serve(t, api, b), b.host("web")
	api.AwaitSidecar(b.namespace, name, b.namespace+"/"+b.host("cart"))
	want, before := api.Spec(cluster.Sidecars, b.namespace, name), len(api.own(b.namespace))
	for _, patch := range []string{
		`{"spec": {"workloadSelector": {"labels": {"version": "v1"}}}}`,
		`{"spec": {"workloadSelector": {"labels": {"app": null, "other": "web"}}, "egress": [{"hosts": ["*/*"]}]}}`,
		`{"spec": {"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}, "ingress": [{"port": {"number": 80, "name": "x", "protocol": "HTTP"}, "defaultEndpoint": "127.0.0.1:80"}]}}`,
		`{"spec": null}`,
	} {
		if err := api.client.As("kubectl-patch").Patch(t.Context(), cluster.Sidecars, b.namespace, name, types.MergePatchType, patch); err != nil {
			t.Fatal(err)
		}
		await(t, "the scope to be repaired after "+patch, func() error {
			if diff := cmp.Diff(want, api.Spec(cluster.Sidecars, b.namespace, name)); diff != "" {
				return fmt.Errorf("it is not what it was (-):\n%s", diff)
			}
			return nil
		})
	}
	i.MustHaveRestored(4)
	if writes := api.own(b.namespace)[before:]; len(writes) > 2*4+2 { // and other objects that come meanwhile
		t.Errorf("4 edits led to %+v", writes)
	}
}
