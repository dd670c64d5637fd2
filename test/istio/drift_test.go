package istio_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestDriftIsRestored edits and deletes an object by hand.
func TestDriftIsRestored(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("reviews", "10.0.0.1:80", "10.0.0.2:80")
	b := api.Bridge(registry, "drift")
	i := serve(t, api, b)
	api.Settle(b)
	name := b.host("reviews")

	began := time.Now()
	api.Edit(cluster.ServiceEntries, b.namespace, name, func(o map[string]any) {
		endpoints := []any{map[string]any{"address": "10.6.6.6"}}
		if err := unstructured.SetNestedSlice(o, endpoints, "spec", "endpoints"); err != nil {
			t.Fatal(err)
		}
	})
	api.AwaitMirror(b)
	logRestored(t, "an edit", began)

	began = time.Now()
	api.Edit(cluster.ServiceEntries, b.namespace, name, func(o map[string]any) {
		if err := unstructured.SetNestedField(o, "MESH_EXTERNAL", "spec", "location"); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedStringSlice(o, []string{"240.1.1.1"}, "spec", "addresses"); err != nil {
			t.Fatal(err)
		}
	})
	await(t, "the fields to be restored", func() error {
		spec := api.Spec(cluster.ServiceEntries, b.namespace, name)
		if spec["location"] == "MESH_EXTERNAL" || spec["addresses"] != nil {
			return fmt.Errorf("it is %v", spec)
		}
		return nil
	})
	logRestored(t, "fields", began)

	began = time.Now()
	if err := api.client.Delete(t.Context(), cluster.ServiceEntries, b.namespace, name); err != nil {
		t.Fatal(err)
	}
	api.AwaitMirror(b)
	logRestored(t, "a deletion", began)
	api.Settle(b)
	api.MustHaveDeleted(b.namespace, "reviews") // by hand, only
	i.MustHaveRestored(3)
}

func logRestored(t *testing.T, what string, began time.Time) {
	t.Helper()
	t.Logf("%s was restored after %s", what, time.Since(began).Round(time.Millisecond))
}

// TestStatusOfIstiodIsNoDrift has istiod write into what Isthmus has written.
func TestStatusOfIstiodIsNoDrift(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("reviews", "10.0.0.1:80")
	b := api.Bridge(registry, "status")
	i := serve(t, api, b)
	await(t, "istiod to write", func() error {
		for _, w := range api.WritesBy("istiod", b.namespace) {
			if w.Changed() && w.Subresource == "status" {
				return nil
			}
		}
		return fmt.Errorf("there were %v", api.Writes(b.namespace))
	})
	api.Settle(b)
	if writes := api.WritesBy(i.user, b.namespace); len(writes) != 2 { // reviews and the marker
		t.Errorf("2 services were written by %d writes: %+v", len(writes), writes)
	}
	i.MustHaveRestored(0)
}

// foreign are the labels of objects that are in the way of one that the
// Isthmus INSTANCE is to write, by why they are not its own.
var foreign = map[string]string{
	"without-labels":       `{}`,
	"of-somebody-else":     `{app.kubernetes.io/managed-by: helm}`,
	"of-another-instance":  `{app.kubernetes.io/managed-by: isthmus, isthmus.io/instance: other}`,
	"of-no-instance":       `{app.kubernetes.io/managed-by: isthmus}`,
	"of-an-unknown-writer": `{isthmus.io/instance: INSTANCE}`,
}

// TestForeignObjectsAreLeftAlone has an object of somebody else in the way of
// one of a registered service, and another one beside it.
func TestForeignObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	for why, labels := range foreign {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			api, registry := connect(t, shared), startRegistry(t)
			b := api.Bridge(registry, "foreign-"+why)
			labels := strings.ReplaceAll(labels, "INSTANCE", b.namespace)
			names := []string{b.host("reviews"), b.host("ratings")}
			before := map[string]map[string]any{}
			for _, name := range names {
				api.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
spec:
  hosts: [%[1]s]
  ports: [{number: 443, name: tls, protocol: TLS}]
  resolution: NONE
`, name, b.namespace, labels))
				before[name] = api.Spec(cluster.ServiceEntries, b.namespace, name)
			}
			registry.Add("reviews", "10.0.0.1:80")
			i := serve(t, api, b)
			api.awaitMarker(b)
			i.AwaitRejection(names[0], "")
			registry.Remove("reviews", "10.0.0.1:80")
			registry.Add("reviews", "10.0.0.2:80")
			api.awaitMarker(b)
			for _, name := range names {
				if diff := cmp.Diff(before[name], api.Spec(cluster.ServiceEntries, b.namespace, name)); diff != "" {
					t.Errorf("%s was changed:\n%s", name, diff)
				}
			}
			for _, w := range api.WritesBy(i.user, b.namespace) {
				if w.Changed() && (w.Name == names[0] || w.Name == names[1]) {
					t.Errorf("it was written: %+v", w)
				}
			}

			// When the name is free, it is taken.
			if err := api.client.Delete(t.Context(), cluster.ServiceEntries, b.namespace, names[0]); err != nil {
				t.Fatal(err)
			}
			api.Settle(b)
			api.MustHaveDeleted(b.namespace, "reviews") // by hand
		})
	}
}
