package demo

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"
)

const (
	// pace is how often each service is called.
	pace = 10 * time.Millisecond
	// callTimeout is much more than a call takes, so that a call does not fail because of a
	// busy machine.
	callTimeout = 5 * time.Second
	// retry is how long gRPC waits before it tries to reach a backend again. It
	// is so short because the attempts show when gRPC learns that one is gone.
	retry = 10 * time.Millisecond
)

// client calls every service continuously. It has a gRPC channel for each, with its own xDS
// stream, as gRPC does.
type client struct {
	seen  *ledger
	conns []*grpc.ClientConn
	stop  context.CancelFunc
	calls sync.WaitGroup
}

// clientBootstrap tells gRPC where the control plane is and who asks.
const clientBootstrap = `{
  "xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
  "node": {"id": %q, "metadata": {"NAMESPACE": %q}}
}`

// nodeID is the name under which the channel of a service asks the control plane.
func nodeID(s service) string { return "demo-client-of-" + s.name }

// startClient starts to call each service at its target.
func startClient(ctx context.Context, xdsAddress string, target func(service) string, seen *ledger) (*client, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &client{seen: seen, stop: stop}
	for _, s := range services {
		conn, err := c.dial(xdsAddress, target(s), s)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("making a gRPC channel to %s: %w", target(s), err)
		}
		c.conns = append(c.conns, conn)
		c.calls.Go(func() { c.keepCalling(ctx, s, healthpb.NewHealthClient(conn)) })
	}
	return c, nil
}

func (c *client) dial(xdsAddress, target string, s service) (*grpc.ClientConn, error) {
	// Outside tests a process has one bootstrap, from its environment. The demo
	// has no business with that, so it gives its own to its channels only.
	resolver, err := xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil, clientBootstrap, xdsAddress, nodeID(s), namespace))
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("xds:///"+target,
		grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(c.connect),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: retry, Multiplier: 1, Jitter: 0.2, MaxDelay: retry},
			MinConnectTimeout: time.Second,
		}),
	)
}

// connect notes whom gRPC tries to reach.
func (c *client) connect(ctx context.Context, address string) (net.Conn, error) {
	c.seen.tried(address, time.Now())
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// keepCalling calls until ctx ends.
func (c *client) keepCalling(ctx context.Context, s service, health healthpb.HealthClient) {
	next := time.NewTicker(pace)
	defer next.Stop()
	for ctx.Err() == nil {
		name, err := call(ctx, health)
		switch {
		case err == nil:
			c.seen.answered(s.name, name, time.Now())
		case ctx.Err() == nil:
			c.seen.failed(s.name, err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
}

// call makes one call and returns who answered it: a name, or an address if
// the backend is none of ours.
func call(ctx context.Context, health healthpb.HealthClient) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var header metadata.MD
	var from peer.Peer
	if _, err := health.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.Peer(&from)); err != nil {
		return "", err
	}
	if names := header.Get(answeredBy); len(names) == 1 {
		return names[0], nil
	}
	return from.String(), nil
}

// close ends the calls, then the channels and with them their xDS streams.
func (c *client) close() {
	c.stop()
	c.calls.Wait()
	for _, conn := range c.conns {
		_ = conn.Close() // an error only means that it was closed before
	}
}
