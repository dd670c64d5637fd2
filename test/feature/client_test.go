package feature_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
)

// callTimeout bounds one call. A call to a service that the client knows takes
// a millisecond.
const callTimeout = 5 * time.Second

// client is a gRPC channel that gets its endpoints over a stream of its own.
type client struct {
	t    *testing.T
	id   string
	conn *grpc.ClientConn
}

// dial connects to a service as a workload of a namespace; an empty one is not told.
func dial(t *testing.T, i *isthmus, target, namespace string) *client {
	t.Helper()
	c := &client{t: t, id: fmt.Sprintf("%s in %q", target, namespace)}
	resolver, err := xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": %q, "metadata": {"NAMESPACE": %q}}
	}`, i.XDS, c.id, namespace))
	if err != nil {
		t.Fatal(err)
	}
	c.conn, err = grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	i.clients = append(i.clients, func() { _ = c.conn.Close() })
	c.conn.Connect()
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
	await(c.t, fmt.Sprintf("answers from %v to %s", names, c.id), func() error {
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

// AwaitFailure waits until a call fails as Unavailable, saying what is given.
func (c *client) AwaitFailure(saying string) {
	c.t.Helper()
	await(c.t, fmt.Sprintf("a call to %s to fail, saying %q", c.id, saying), func() error {
		name, err := c.Call(c.t.Context())
		if err == nil {
			return fmt.Errorf("%s answered", name)
		}
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), saying) {
			return err
		}
		return nil
	})
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
	pace := time.NewTicker(2 * time.Millisecond)
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
		f.t.Errorf("%d of %d calls to %s failed: %v", len(f.failures), f.calls, f.client.id, errors.Join(f.failures[:min(3, len(f.failures))]...))
	}
}
