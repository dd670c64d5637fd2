package feature_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
)

// dial connects to a service as a workload of a namespace; an empty one is not
// sent. The client has its name for the id of its node.
func dial(t *testing.T, i *isthmus, target, namespace string) *calls.Client {
	t.Helper()
	name := nameOf(target, namespace)
	c := calls.Dial(t, calls.Config{
		Name: name, Target: target, Pace: 2 * time.Millisecond, Await: await,
		Bootstrap: fmt.Appendf(nil, `{
			"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
			"node": {"id": %q, "metadata": {"NAMESPACE": %q}}
		}`, i.XDS, name, namespace),
	})
	i.clients = append(i.clients, func() { _ = c.Conn.Close() })
	c.Conn.Connect()
	return c
}

// nameOf is the id of the node of a client.
func nameOf(target, namespace string) string { return fmt.Sprintf("%s in %q", target, namespace) }
