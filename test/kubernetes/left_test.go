package kubernetes_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

const leftOutObjects = `
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: left, name: names, labels: {kubernetes.io/service-name: web}}
  addressType: FQDN
  ports: [{name: http, port: 8080}]
  endpoints: [{addresses: [a.example.com]}]
- apiVersion: networking.istio.io/v1
  kind: ServiceEntry
  metadata: {namespace: left, name: own, labels: {app.kubernetes.io/managed-by: isthmus}}
  spec: {hosts: [own.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.8.0.1}]}
`

// Slices of names, and what an Isthmus wrote, are left out, and the status counts them.
func TestObjectsThatAreLeftOutAreCounted(t *testing.T) {
	t.Parallel()
	c := own(t)
	client := connect(t, c)
	if err := client.Namespace(t.Context(), "left"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, leftOutObjects) {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	m := mirror(t, kubeconfig(t, c.API, cluster.Admin))
	m.awaitState(source.StateLive)
	count := func(want map[string]int) {
		t.Helper()
		await(t, fmt.Sprint(want), func() error {
			if diff := cmp.Diff(want, m.supervisor.Status().Ignored); diff != "" {
				return fmt.Errorf("(-want +got)\n%s", diff)
			}
			return nil
		})
	}
	count(map[string]int{"EndpointSlice": 1, "ServiceEntry": 1})
	if r := m.records("left"); len(r) > 0 {
		t.Errorf("there is %v", r)
	}
	another := objects(t, leftOutObjects)[0]
	another.SetName("others")
	if err := client.Apply(t.Context(), slicesOf, another); err != nil {
		t.Fatal(err)
	}
	count(map[string]int{"EndpointSlice": 2, "ServiceEntry": 1})
	for _, name := range []string{"names", "others"} {
		if err := client.Delete(t.Context(), slicesOf, "left", name); err != nil {
			t.Fatal(err)
		}
	}
	count(map[string]int{"ServiceEntry": 1})
}
