package calls_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is a test that may fail without failing this one.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Errorf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, time.Millisecond, what, check)
}

func listen(t *testing.T, name string) *calls.Backend {
	t.Helper()
	b, err := calls.Listen(t, name, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// client is one that needs no control plane, because it has the address.
type client struct {
	*calls.Client
	failed atomic.Int64
}

func dial(t testing.TB, b *calls.Backend) *client {
	t.Helper()
	c := &client{Client: calls.Dial(t, calls.Config{
		Name: "the client", Target: "unused", Pace: time.Millisecond, Await: await,
		Bootstrap: []byte(`{"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}`),
	})}
	err := c.Conn.Close()
	if err != nil {
		t.Fatal(err)
	}
	c.Conn, err = grpc.NewClient(b.Addr.String(), grpc.WithUnaryInterceptor(c.count),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Conn.Close() })
	return c
}

func (c *client) count(ctx context.Context, method string, ask, answer any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := call(ctx, method, ask, answer, conn, options...)
	if err != nil {
		c.failed.Add(1)
	}
	return err
}

func TestCallNamesWhoAnswered(t *testing.T) {
	t.Parallel()
	b := listen(t, "one")
	if name, err := dial(t, b).Call(t.Context()); err != nil || name != "one" || b.Calls() != 1 {
		t.Errorf("%q answered the first of %d calls: %v", name, b.Calls(), err)
	}
}

func TestTrafficIsReportedIfItFailed(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	b := listen(t, "one")
	c := dial(f, b)
	traffic := c.KeepCalling()
	c.AwaitAnswers("one")
	if traffic.MustNotHaveFailed(); f.said != "" {
		t.Errorf("of traffic that did not fail it says %q", f.said)
	}

	traffic = c.KeepCalling()
	b.Stop()
	await(t, "two calls to fail", func() error { // the first has been noted when the second is made
		if c.failed.Load() < 2 {
			return errors.New("they do not")
		}
		return nil
	})
	if traffic.MustNotHaveFailed(); !strings.Contains(f.said, "calls to the client failed: rpc error: code = Unavailable") {
		t.Errorf("of traffic that failed it says %q", f.said)
	}
	c.AwaitFailure("connection refused")
}
