package istio_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/internal/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// law is a property's test as those see it who wait for something.
type law struct {
	*testing.T
	check *rapid.T
}

// Fatalf ends the attempt, and not the test, so that a smaller one is looked for.
func (l law) Fatalf(format string, arguments ...any) { l.check.Fatalf(format, arguments...) }

// TestAnyObjectIsTakenOver has objects that any managers have written, of any
// content that the API server takes, handed over, and then written once more.
// What Isthmus wants is reached each time, and then it writes no more.
func TestAnyObjectIsTakenOver(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "any")
	i := serve(t, api, b)
	registry.AddWeb("model", "10.0.0.1", "10.0.0.2")
	want := entry{api.awaitEndpoints(b.namespace, b.host("model"), 2)}.spec()
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
		for service, name := range names {
			registry.Add(service)
			id := registry.ids["model"]
			_ = id
			registry.AddWeb(service, "10.0.0.1", "10.0.0.2")
			api.refused(l, i, name)
		}
		for _, name := range names {
			api.label(b.namespace, name, handedOver(b))
		}
		for _, name := range names {
			api.reached(l, b.namespace, name, want)
		}
		for _, name := range names {
			await(l, "an edit", func() error { return api.drawWrite(rt, b.namespace, name) })
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
	perObject := map[string]int{}
	for _, w := range before {
		if perObject[w.Name]++; w.Name != b.host("model") && perObject[w.Name] > 1+2*5 {
			t.Errorf("%s was written %d times", w.Name, perObject[w.Name])
		}
	}
	t.Logf("%d objects in %d checks, by %d writes", objects, checks, len(before))
}
