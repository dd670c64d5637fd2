package istio_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
)

// dial connects to a service, such as reviews.example.com:80, as a workload of
// the namespace.
func dial(t *testing.T, istiod *cluster.Istiod, namespace, target string) *calls.Client {
	t.Helper()
	return dialAs(t, istiod, "client", namespace, target)
}

// dialAs is dial as a workload with the label app. It has an address of its own,
// for istiod takes the labels of an endpoint at the address for those of the client.
func dialAs(t *testing.T, istiod *cluster.Istiod, app, namespace, target string) *calls.Client {
	t.Helper()
	c := calls.Dial(t, calls.Config{
		Name: target, Target: target, Pace: 5 * time.Millisecond, Await: await,
		Bootstrap: fmt.Appendf(nil, `{
			"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
			"node": {
				"id": "sidecar~10.77.0.1~%[3]s.%[2]s~%[2]s.svc.cluster.local",
				"metadata": {"GENERATOR": "grpc", "NAMESPACE": %[2]q, "LABELS": {"app": %[3]q}}
			}
		}`, istiod.XDS, namespace, app),
	})
	t.Cleanup(func() { _ = c.Conn.Close() })
	return c
}
