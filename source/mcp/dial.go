package mcp

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// dial connects to the peer, and runs a session until the stream ends.
func (s *Source) dial(ctx context.Context, sink source.Sink) error {
	secured, err := s.config.TLS.dialled().Credentials()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+s.config.Address,
		grpc.WithTransportCredentials(secured),
		grpc.WithContextDialer(s.config.connect),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: s.config.pace.connect}),
		// A server may forbid more frequent pings. TCP keepalive detects a dead peer
		// sooner.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(s.codec()), grpc.MaxCallRecvMsgSize(s.config.largest(s.env.Memory)), grpc.WaitForReady(false),
		),
	)
	if err != nil {
		return fmt.Errorf("%s: %w", s.peer(), err)
	}
	defer conn.Close()
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	stream, err := conn.NewStream(streamCtx, &mcp.ResourceSource_ServiceDesc.Streams[0], mcp.ResourceSource_EstablishResourceStream_FullMethodName)
	if err != nil {
		return s.session(nil, end, sink).explain(err)
	}
	return s.session(stream, end, sink).run(ctx)
}

// codec returns the codec of a stream.
func (s *Source) codec() codec { return codec{most: s.holding.bounds.bytes / perResource} }

// connect opens a connection with TCP keepalive, which soon detects a dead peer.
func (c *Config) connect(ctx context.Context, address string) (net.Conn, error) {
	if c.dialer != nil {
		return c.dialer(ctx, address)
	}
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}}
	return d.DialContext(ctx, "tcp", address)
}
