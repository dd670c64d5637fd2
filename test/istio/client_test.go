package istio_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/xds"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// callTimeout bounds one call, which takes a millisecond if the client knows
// the service.
const callTimeout = 5 * time.Second

// client is a gRPC channel that gets its endpoints from an istiod.
type client struct {
	t      *testing.T
	target string
	conn   *grpc.ClientConn
}

// dial connects to a service, such as reviews.example.com:80, as a workload of
// the namespace.
func dial(t *testing.T, istiod *cluster.Istiod, namespace, target string) *client {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {
			"id": "sidecar~127.0.0.1~client.%[2]s~%[2]s.svc.cluster.local",
			"metadata": {"GENERATOR": "grpc", "NAMESPACE": %[2]q}
		}
	}`, istiod.XDS, namespace))
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, target: target}
	c.conn, err = grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// Call makes one call and returns who answered it.
func (c *client) Call(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var header metadata.MD
	_, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	if err != nil {
		return "", err
	}
	return strings.Join(header.Get(answeredBy), ","), nil
}

// AwaitAnswers waits until calls are answered by each of the backends named,
// and by nobody else.
func (c *client) AwaitAnswers(names ...string) {
	c.t.Helper()
	slices.Sort(names)
	await(c.t, fmt.Sprintf("answers from %v to %s", names, c.target), func() error {
		if got := c.answers(25 * len(names)); !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
			return fmt.Errorf("the last calls were answered by %v", got)
		}
		return nil
	})
}

// answers makes calls, until one fails, and counts who answered them.
func (c *client) answers(calls int) map[string]int {
	got := map[string]int{}
	for range calls {
		name, err := c.Call(c.t.Context())
		if err != nil {
			got["error: "+err.Error()]++
			break
		}
		got[name]++
	}
	return got
}
