package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// Services that each cluster has for itself are not read, nor are their endpoints. That of
// the API server is read, with its endpoints, as one that is local to the cluster.
func TestClusterLocalServicesAreNotRead(t *testing.T) {
	t.Parallel()
	client := connect(t, shared)
	for _, namespace := range []string{"local", "partly"} {
		if err := client.Namespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		for _, manifest := range []string{webService, webSlice} {
			o := object(t, manifest, namespace)
			if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
				t.Fatal(err)
			}
		}
	}
	every, some := mirror(t, kubeconfig(t, shared.API, cluster.Admin)), mirror(t, kubeconfig(t, shared.API, cluster.Admin), func(c *kubernetes.Config) {
		c.ClusterLocal = []string{"local/*", "partly/web"}
	})
	every.awaitState(source.StateLive)
	some.awaitState(source.StateLive)
	some.mustFollow(client, "partly") // which has a Service of its own that is read
	some.mustFollow(client, "default")
	for namespace, count := range map[string]int{"local": 0, "partly": 3, "default": 4} {
		await(t, fmt.Sprintf("%d records of %s", count, namespace), func() error { // the API server writes its own when it gets to that
			if r := some.records(namespace); len(r) != count || has(r, "10.1.0.1") {
				return fmt.Errorf("there is %v", r)
			}
			return nil
		})
	}
	if r := every.records("local"); !has(r, "10.1.0.1") {
		t.Errorf("what is not local is not read: %v", r)
	}
	await(t, "the Service of the API server and its endpoint", func() error { // it writes them when it gets to that
		r := every.records("default")
		if !strings.Contains(r["Service service:kubernetes"], `"clusterLocal":true`) || len(r) < 2 {
			return fmt.Errorf("there is %v", r)
		}
		return nil
	})
}
