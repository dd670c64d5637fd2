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
	return dialAs(t, istiod, "client", namespace, target)
}

// dialAs is dial as a workload with the label app. It has an address of its own,
// for istiod takes the labels of an endpoint at the address for those of the client.
func dialAs(t *testing.T, istiod *cluster.Istiod, app, namespace, target string) *client {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {
			"id": "sidecar~10.77.0.1~%[3]s.%[2]s~%[2]s.svc.cluster.local",
			"metadata": {"GENERATOR": "grpc", "NAMESPACE": %[2]q, "LABELS": {"app": %[3]q}}
		}
	}`, istiod.XDS, namespace, app))
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

// AwaitFailure waits until calls fail.
func (c *client) AwaitFailure() {
	c.t.Helper()
	await(c.t, "a call to "+c.target+" to fail", func() error {
		if name, err := c.Call(c.t.Context()); err == nil {
			return fmt.Errorf("%s answered", name)
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

// traffic is calls that go on beside the test.
type traffic struct {
	t      *testing.T
	client *client
	cancel context.CancelFunc
	done   chan struct{}

	// Owned by the calling goroutine until done.
	calls    int
	failures []error
}

// KeepCalling calls all the time until the traffic is stopped.
func (c *client) KeepCalling() *traffic {
	ctx, cancel := context.WithCancel(c.t.Context())
	f := &traffic{t: c.t, client: c, cancel: cancel, done: make(chan struct{})}
	go f.run(ctx)
	c.t.Cleanup(func() { cancel(); <-f.done })
	return f
}

func (f *traffic) run(ctx context.Context) {
	defer close(f.done)
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		if _, err := f.client.Call(ctx); err != nil && ctx.Err() == nil {
			f.failures = append(f.failures, err)
		}
		f.calls++
		<-pace.C
	}
}

// MustNotHaveFailed stops the traffic. None of the calls may have failed.
func (f *traffic) MustNotHaveFailed() {
	f.t.Helper()
	f.cancel()
	<-f.done
	if len(f.failures) > 0 {
		f.t.Errorf("%d of %d calls to %s failed, first: %v", len(f.failures), f.calls, f.client.target, f.failures[0])
	}
}
