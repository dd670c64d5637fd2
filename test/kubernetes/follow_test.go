package kubernetes_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// object reads a manifest.
func object(t testing.TB, format string, args ...any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func connect(t testing.TB, c *cluster.Cluster) *cluster.Client {
	t.Helper()
	client, err := c.API.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

const webService = `
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: web}
spec:
  ports: [{name: http, port: 80, targetPort: 8080}]
`

const webSlice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: %[1]s, name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.1.0.1], conditions: {ready: true}}
- {addresses: [10.1.0.2], conditions: {ready: true}}
`

// A Service and its endpoints come, change and go.
func TestServiceIsFollowed(t *testing.T) {
	t.Parallel()
	client, w := connect(t, shared), newWay(t, shared.API)
	if err := client.Namespace(t.Context(), "followed"); err != nil {
		t.Fatal(err)
	}
	m := mirror(t, w.Kubeconfig(t))
	m.awaitState(source.StateLive)
	for _, o := range []struct{ manifest string }{{webService}, {webSlice}} {
		u := object(t, o.manifest, "followed")
		kind := services
		if u.GetKind() == "EndpointSlice" {
			kind = slicesOf
		}
		if err := client.Apply(t.Context(), kind, u); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "both endpoints", func() error {
		if r := m.records("followed"); !has(r, "10.1.0.1") || !has(r, "10.1.0.2") {
			return fmt.Errorf("there is %v", r)
		}
		return nil
	})
	if err := client.Delete(t.Context(), services, "followed", "web"); err != nil {
		t.Fatal(err)
	}
	await(t, "nothing is left", func() error {
		if r := m.records("followed"); len(r) > 0 {
			return errors.New(fmt.Sprint(r))
		}
		return nil
	})
	t.Log(m.supervisor.Status())
}
