package scale

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const service = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

// window is that of a connection and a stream, as wide as Envoy's, so that a
// response arrives in one go and the sides need not probe the line for it.
const window = 16 << 20

// client is one stream on a connection of its own. One goroutine runs it.
type client struct {
	*script

	number int
	fleet  *fleet
	stream grpc.ClientStream
	at     int // the step that is under way; past the last, the client has everything
	has    int // resources of it that have arrived
}

// run connects, says what the script says, and accepts all it is sent until
// ctx ends.
func (c *client) run(ctx context.Context) error {
	conn, err := c.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	method := service + "StreamAggregatedResources"
	if c.delta {
		method = service + "DeltaAggregatedResources"
	}
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	if c.stream, err = conn.NewStream(ctx, desc, method); err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	if err := c.stream.SendMsg(c.first(fmt.Sprintf("client-%04d", c.number))); err != nil {
		return fmt.Errorf("send the first request: %w", err)
	}
	if err := c.proceed(); err != nil {
		return err
	}
	return c.receive()
}

func (c *client) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+c.fleet.server.xds,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableServiceConfig(),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(window)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return meteredConn{conn, &c.fleet.meter}, err
		}))
}

// receive takes in responses until the stream ends.
func (c *client) receive() error {
	r := response{recording: c.number == 0 && c.delta}
	for {
		if err := c.stream.RecvMsg(&r); err != nil {
			return err
		}
		now := time.Now()
		c.fleet.keep(&r)
		step := c.stepOf(r.typeURL)
		if step < 0 {
			return fmt.Errorf("a response of a type that was not asked for: %s", r.typeURL)
		}
		if err := c.stream.SendMsg(c.accept(&c.steps[step], &r)); err != nil {
			return fmt.Errorf("acknowledge: %w", err)
		}
		if c.at == len(c.steps) {
			c.fleet.received(c, &r, now)
			continue
		}
		if step != c.at {
			continue // of a step that is done
		}
		if c.has += r.resources; c.has < c.steps[step].want {
			continue
		}
		if err := c.next(now); err != nil {
			return err
		}
	}
}

// next goes on to the next step, or reports that the client has everything.
func (c *client) next(now time.Time) error {
	c.at++
	c.has = 0
	if c.at == len(c.steps) {
		c.fleet.complete(c, now)
		return nil
	}
	if err := c.stream.SendMsg(request{fixed: c.steps[c.at].ask}); err != nil {
		return fmt.Errorf("ask for %s: %w", c.steps[c.at].typeURL, err)
	}
	return c.proceed()
}

// proceed passes over a step whose answer is not waited for.
func (c *client) proceed() error {
	if !c.steps[c.at].silent {
		return nil
	}
	return c.next(time.Now())
}
