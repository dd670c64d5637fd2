package istio_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	client, err := shared.API.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Namespace(t.Context(), "smoke"); err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: smoke}
spec:
  hosts: [reviews.smoke.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {http: 8080}}]
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	if err := client.Apply(t.Context(), cluster.ServiceEntries, &object); err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context(), cluster.ServiceEntries, "smoke", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].GetName() != "reviews" {
		t.Errorf("there are %v", list)
	}
	writes, err := shared.API.Writes("smoke")
	if err != nil {
		t.Fatal(err)
	}
	if len(writes) != 1 || writes[0].Verb != "patch" || writes[0].User != cluster.Admin || !writes[0].Changed() {
		t.Errorf("the audit log has %+v", writes)
	}
}
