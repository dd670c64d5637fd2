// Package calls is both ends of the calls by which a test sees what a control
// plane has sent: gRPC's own xDS client, and backends that say who they are.
// Whose control plane it is, the caller says by the bootstrap.
//
// A [Client] belongs to the goroutine of the test; its [Traffic] goes on beside.
package calls

import (
	"context"
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

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// attempt bounds one of the calls that are made again until one has the outcome. Any other
// call may take as long as [until.Patience].
const attempt = 5 * time.Second

// Config is what clients differ in.
type Config struct {
	Name      string        // what the test calls the client when it fails
	Target    string        // such as reviews.example.com:80
	Bootstrap []byte        // gRPC's configuration of xDS: whom to ask, and as whom
	Pace      time.Duration // between two calls of [Client.KeepCalling]
	Await     func(t testing.TB, what string, check func() error)
}

// Client is a gRPC channel that gets its endpoints over a stream of its own.
type Client struct {
	Config
	Conn *grpc.ClientConn // to be closed by whom it was made for

	t testing.TB
}

// Dial makes a client. It connects with its first call.
func Dial(t testing.TB, config Config) *Client {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(config.Bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///"+config.Target, grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return &Client{Config: config, Conn: conn, t: t}
}

// Call makes one call and returns who answered it.
func (c *Client) Call(ctx context.Context) (string, error) { return c.call(ctx, until.Patience) }

func (c *Client) call(ctx context.Context, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var header metadata.MD
	_, err := healthpb.NewHealthClient(c.Conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	if err != nil {
		return "", err
	}
	return strings.Join(header.Get(answeredBy), ","), nil
}

// AwaitAnswers waits until calls are answered by each of the backends named,
// and by nobody else.
func (c *Client) AwaitAnswers(names ...string) {
	c.t.Helper()
	slices.Sort(names)
	c.Await(c.t, fmt.Sprintf("answers from %v to %s", names, c.Name), func() error {
		if got := c.answers(25 * len(names)); !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
			return fmt.Errorf("the last calls were answered by %v", got)
		}
		return nil
	})
}

// answers makes calls, until one fails, and counts who answered them.
func (c *Client) answers(calls int) map[string]int {
	got := map[string]int{}
	for range calls {
		name, err := c.call(c.t.Context(), attempt)
		if err != nil {
			got["error: "+err.Error()]++
			break
		}
		got[name]++
	}
	return got
}

// AwaitFailure waits until a call fails as Unavailable, saying what is given.
func (c *Client) AwaitFailure(saying string) {
	c.t.Helper()
	c.Await(c.t, fmt.Sprintf("a call to %s to fail, saying %q", c.Name, saying), func() error {
		name, err := c.call(c.t.Context(), attempt)
		if err == nil {
			return fmt.Errorf("%s answered", name)
		}
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), saying) {
			return err
		}
		return nil
	})
}

// AwaitAnyFailure waits until a call fails, for whatever reason.
func (c *Client) AwaitAnyFailure() {
	c.t.Helper()
	c.Await(c.t, "a call to "+c.Name+" to fail", func() error {
		if name, err := c.call(c.t.Context(), attempt); err == nil {
			return fmt.Errorf("%s answered", name)
		}
		return nil
	})
}
