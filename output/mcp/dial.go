package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/output/streams"
)

// dialled is a sink that is dialled repeatedly.
type dialled struct {
	Sink
	up atomic.Bool // the sink has sent a request on the current stream
}

// redial is the wait until a sink is dialled again.
var redial = wait.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second} //nolint:gochecknoglobals // a constant

// dialPings is the interval of pings to a silent sink: the shortest that a gRPC server
// accepts by default.
const dialPings = 6 * time.Minute

// dial keeps a stream to a sink until ctx ends. It begins once the engine is primed.
func (s *Server) dial(ctx context.Context, d *dialled) {
	select {
	case <-s.engine.Primed():
	case <-ctx.Done():
		return
	}
	log := s.Log.With("sink", d.Address)
	for failures := 0; ctx.Err() == nil; {
		err := s.reach(ctx, d)
		if d.up.Swap(false) {
			failures = 0
		}
		failures++
		delay := redial.After(failures, rand.Float64()) //nolint:gosec // it spreads load, and keeps no secret
		if ctx.Err() == nil {
			log.Warn("no stream to a sink; reconnecting", "err", explained(err), "in", delay.Round(time.Millisecond))
		}
		wait.Sleep(ctx, delay)
	}
}

func explained(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "the sink ended the stream"
	}
	return grpcstatus.Convert(err).Message()
}

// reach dials a sink and serves it until the stream ends.
func (s *Server) reach(ctx context.Context, d *dialled) (err error) {
	defer s.Survive(&err)
	security, err := d.TLS.Credentials()
	if err != nil {
		return err
	}
	target := d.Address
	if !strings.HasPrefix(target, "unix://") {
		target = "dns:///" + target
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(security),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: dialPings, Timeout: streams.PingTimeout}),
		grpc.WithStaticStreamWindowSize(streams.StreamWindow), grpc.WithStaticConnWindowSize(streams.Window), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wire, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, mcp.ResourceSink_EstablishResourceStream_FullMethodName,
		grpc.ForceCodecV2(streams.NewCodec()), grpc.MaxCallRecvMsgSize(s.limits.Message))
	if err != nil {
		return err
	}
	// The sink's handler does not begin before the first message.
	if err := wire.SendMsg(&mcp.Resources{Collection: mcp.TriggerCollection}); err != nil {
		return fmt.Errorf("the sink rejects the stream: %w", err)
	}
	stream := s.Opened(wire, streams.Identity{Address: "sink " + d.Address, From: d.Address})
	first, err := streams.Receive(stream, s.limits.decode)
	if err != nil {
		return err
	}
	d.up.Store(true)
	s.Log.Info("connected to a sink", "sink", d.Address, "client", first.GetSinkNode().GetId())
	return s.run(stream, first, cmp.Or(described(first), "dialled at "+d.Address))
}
