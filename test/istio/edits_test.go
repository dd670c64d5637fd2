package istio_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// repaired are edits of fields that Isthmus says, by what they do. Every object
// has the ports http-8080 and tcp-7070, in this order, and two endpoints.
var repaired = map[string]edit{
	"a port is renamed":            edited(func(o entry) { o.port(0)["name"] = "web" }),
	"every port is renamed":        edited(func(o entry) { o.port(0)["name"], o.port(1)["name"] = "HTTP-8080", "TCP-7070" }),
	"two ports swap their names":   edited(func(o entry) { o.port(0)["name"], o.port(1)["name"] = o.port(1)["name"], o.port(0)["name"] }),
	"two ports swap their numbers": edited(func(o entry) { o.port(0)["number"], o.port(1)["number"] = o.port(1)["number"], o.port(0)["number"] }),
	"two ports swap their places":  edited(func(o entry) { slices.Reverse(o.list("ports")) }),
	"a port gets another number":   edited(func(o entry) { o.port(0)["number"] = int64(8081) }),
	"a port is added":              edited(func(o entry) { o.add("ports", fields{"name": "debug", "number": int64(9999)}) }),
	"a port is removed":            edited(func(o entry) { o.spec()["ports"] = o.list("ports")[:1] }),
	"all ports are removed":        edited(func(o entry) { delete(o.spec(), "ports") }),
	"a protocol is changed":        edited(func(o entry) { o.port(0)["protocol"] = "TLS" }),
	"a target port is added":       edited(func(o entry) { o.port(0)["targetPort"] = int64(8081) }),
	"an endpoint is added":         edited(func(o entry) { o.add("endpoints", fields{"address": "10.6.6.6"}) }),
	"an endpoint is changed":       edited(func(o entry) { o.endpoint(0)["address"] = "10.6.6.6" }),
	"an endpoint gets a weight":    edited(func(o entry) { o.endpoint(0)["weight"] = int64(7) }),
	"an endpoint is removed":       edited(func(o entry) { o.spec()["endpoints"] = o.list("endpoints")[:1] }),
	"all endpoints are removed":    edited(func(o entry) { delete(o.spec(), "endpoints") }),
	"workloads replace the endpoints": edited(func(o entry) {
		delete(o.spec(), "endpoints")
		o.spec()["workloadSelector"] = fields{"labels": fields{"app": "web"}}
	}),
	"the host is changed":                edited(func(o entry) { o.spec()["hosts"] = []any{"other.example"} }),
	"a host is added":                    edited(func(o entry) { o.add("hosts", "other.example") }),
	"the resolution is changed":          edited(func(o entry) { o.spec()["resolution"] = "DNS" }),
	"nothing is resolved any more":       edited(func(o entry) { delete(o.spec(), "endpoints"); o.spec()["resolution"] = "NONE" }),
	"the location is changed":            edited(func(o entry) { o.spec()["location"] = "MESH_EXTERNAL" }),
	"the location is removed":            edited(func(o entry) { delete(o.spec(), "location") }),
	"it is exported to one namespace":    edited(func(o entry) { o.spec()["exportTo"] = []any{"."} }),
	"it gets an address":                 edited(func(o entry) { o.spec()["addresses"] = []any{"240.1.1.1"} }),
	"it gets a name of a certificate":    edited(func(o entry) { o.spec()["subjectAltNames"] = []any{"spiffe://other"} }),
	"its sources are changed":            edited(func(o entry) { o.annotate("isthmus.io/sources", "other") }),
	"its service is changed":             edited(func(o entry) { o.annotate("isthmus.io/service", "other.example") }),
	"its annotations are removed":        edited(func(o entry) { o.SetAnnotations(nil) }),
	"it is as of the earlier bridge":     edited(func(o entry) { o.Object["spec"] = o.earlier() }),
	"nobody owns a port that is renamed": edited(func(o entry) { o.port(0)["name"] = "web"; o.SetManagedFields([]metav1.ManagedFieldsEntry{{}}) }),

	"another applies a port": applied(func(o entry) { o.add("ports", fields{"name": "debug", "number": int64(9999)}) }),
	"another applies other numbers": applied(func(o entry) {
		o.add("ports", fields{"name": "web", "number": o.port(0)["number"]})
		o.port(0)["number"] = int64(8081)
	}),
	"another applies other endpoints":  applied(func(o entry) { o.spec()["endpoints"] = []any{fields{"address": "10.6.6.6"}} }),
	"another applies where it exports": applied(func(o entry) { o.spec()["exportTo"] = []any{"."} }),

	"a patch renames a port": patched(types.JSONPatchType, `[{"op": "replace", "path": "/spec/ports/0/name", "value": "web"}]`),
	"a patch replaces the endpoints": patched(types.JSONPatchType, `[{"op": "remove", "path": "/spec/endpoints"},
		{"op": "add", "path": "/spec/workloadSelector", "value": {"labels": {"app": "web"}}}]`),
	"a merge patch replaces the ports": patched(types.MergePatchType, `{"spec": {"ports": [{"name": "web", "number": 8080}, {"name": "x", "number": 7070}]}}`),
	"a merge patch empties it":         patched(types.MergePatchType, `{"spec": {"ports": null, "endpoints": null, "location": null, "resolution": null}}`),
}

// TestEditsAreRepaired has every edit done to an object of its own. Each is
// repaired soon, in a few writes, and then nothing is written any more. What
// others say beside is left.
func TestEditsAreRepaired(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "edits")
	i, kinds := serve(t, api, b), slices.Sorted(maps.Keys(repaired))
	services, before := map[string]string{}, map[string]*unstructured.Unstructured{}
	for n, kind := range kinds {
		services[kind] = fmt.Sprintf("web-%d", n)
		registry.AddWeb(services[kind], "10.0.0.1", "10.0.0.2")
	}
	api.awaitMarker(b)
	for _, kind := range kinds {
		before[kind] = api.awaitEndpoints(b.namespace, b.host(services[kind]), 2)
	}
	api.awaitMarker(b)

	writes := len(api.WritesBy(i.user, b.namespace))
	for _, kind := range kinds {
		name := b.host(services[kind])
		began := time.Now()
		api.MustEdit(b.namespace, name, kind, repaired[kind])
		api.MustEdit(b.namespace, name, "decoration", edited(entry.decorate))
		api.awaitRepaired(kind, before[kind])
		logRestored(t, kind, began)
		api.mustBeDecorated(kind, b.namespace, name)
	}
	api.awaitMarker(b)
	after := api.WritesBy(i.user, b.namespace)
	applied := map[string][]cluster.Write{}
	for _, w := range after[writes:] {
		if w.Changed() {
			applied[w.Name] = append(applied[w.Name], w)
		}
	}
	for _, kind := range kinds { // there may be two repairs, for the second edit came right after the first
		if got := applied[b.host(services[kind])]; len(got) == 0 || len(got) > 2*mostWrites {
			t.Errorf("%s: it was repaired by %d writes: %+v", kind, len(got), got)
		}
	}
	i.AwaitWriter("writing")
	if w, err := i.writer(); err != nil || len(w.Failed) > 0 || w.Drift < len(kinds) {
		t.Errorf("of %d edits %d were counted as drift, and failed are %+v, %v", len(kinds), w.Drift, w.Failed, err)
	}
	// A while later, and with other things to do, nothing of it is written again.
	api.awaitMarker(b)
	if more := api.WritesBy(i.user, b.namespace)[len(after):]; len(more) != 1 {
		t.Errorf("after everything was repaired it wrote %+v", more)
	}
}

// TestObjectWithoutLabelsIsLeft takes a label off an object, which takes it away
// from Isthmus, and sets it again.
func TestObjectWithoutLabelsIsLeft(t *testing.T) {
	t.Parallel()
	for kind, labels := range map[string]string{
		"removed": `{"app.kubernetes.io/managed-by":null}`, "changed": `{"isthmus.io/instance":"other"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			api, registry := connect(t, shared), startRegistry(t)
			b := api.Bridge(registry, "labels")
			registry.AddWeb("web", "10.0.0.1")
			i, name := serve(t, api, b), b.host("web")
			whole := api.awaitEndpoints(b.namespace, name, 1)
			api.label(b.namespace, name, labels)
			i.AwaitRejection(name, "hand it over")
			api.MustEdit(b.namespace, name, "a label less", repaired["a port is renamed"])
			edited := api.Spec(cluster.ServiceEntries, b.namespace, name)
			api.awaitMarker(b)
			if diff := cmp.Diff(edited, api.Spec(cluster.ServiceEntries, b.namespace, name)); diff != "" {
				t.Errorf("an object without both labels was changed:\n%s", diff)
			}
			api.label(b.namespace, name, handedOver(b))
			api.awaitRepaired("a label less", whole)
		})
	}
}
