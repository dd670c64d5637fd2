package istio_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestServersWorkTogether shows that the servers do what the other tests need,
// without any Isthmus: what is applied is audited, istiod reads it, and a gRPC
// client finds the backend.
func TestServersWorkTogether(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	startBackend(t, "one", "127.0.0.1:"+port)
	api := connect(t, shared)
	namespace := api.NewNamespace("smoke")
	api.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: %[1]s}
spec:
  hosts: [reviews.%[1]s.example]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {grpc: %[2]s}}]
`, namespace, port))
	dial(t, istiod, namespace, "reviews."+namespace+".example:80").AwaitAnswers("one")

	writes := api.WritesBy(cluster.Admin, namespace)
	if len(writes) != 1 || writes[0].Verb != "patch" || !writes[0].Changed() {
		t.Errorf("the audit log has %+v", writes)
	}
}
