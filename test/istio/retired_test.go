package istio_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestSidecarsGoWhenTheyAreSwitchedOff has an Isthmus write Sidecars, and another one
// after it that does not: those of the first go, and clients see everything again.
// Somebody else's Sidecar, and the services, stay as they are.
func TestSidecarsGoWhenTheyAreSwitchedOff(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	users := startBackend(t, "users", "127.0.0.1:"+port)
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("web")
	registry.Add("cart", "10.0.0.2:80")
	registry.Add("users", users.Addr.String())
	registry.Uses("web", "cart")
	b := api.Bridge(registry, "retired")
	b.scoped = true
	i := serve(t, api, b)
	api.Settle(b)
	api.AwaitSidecar(b.namespace, b.host("web"), b.namespace+"/"+b.host("cart"))
	dialAs(t, istiod, "web", b.namespace, b.host("users")+":"+port).AwaitAnyFailure()
	api.Apply(cluster.Sidecars, `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: theirs, namespace: `+b.namespace+`}
spec: {workloadSelector: {labels: {app: other}}, egress: [{hosts: ["./*"]}]}
`)
	if err := i.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(api.own(b.namespace))

	b.scoped = false
	serve(t, api, b)
	await(t, "the Sidecar to go", func() error {
		objects, err := api.client.List(t.Context(), cluster.Sidecars, b.namespace, "")
		if err == nil && (len(objects) != 1 || objects[0].GetName() != "theirs") {
			err = errThere(objects)
		}
		return err
	})
	dialAs(t, istiod, "web", b.namespace, b.host("users")+":"+port).AwaitAnswers("users")
	if writes := api.own(b.namespace)[before:]; len(writes) != 1 || writes[0].Verb != "delete" {
		t.Errorf("it wrote %+v", writes)
	}
}

// errThere says which objects there are.
func errThere(objects []unstructured.Unstructured) error {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return fmt.Errorf("there are %q", names)
}
