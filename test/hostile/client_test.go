package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// connections are several that attackers share.
type connections []*grpc.ClientConn

// attackers opens n connections of well-behaved HTTP/2, whatever is sent on
// them. Whoever opens them closes them.
func (r *room) attackers(n int) (all connections, err error) {
	for range n {
		conn, err := grpc.NewClient(r.target(), r.options()...)
		if err != nil {
			return nil, err
		}
		all = append(all, conn)
	}
	return all, nil
}

func (c connections) close() {
	for _, conn := range c {
		_ = conn.Close()
	}
}

// stream is one on which whole messages are sent and received as bytes.
type stream struct{ grpc.ClientStream }

// open opens a stream for an attacker.
func (c connections) open(ctx context.Context, attacker int, method string) (stream, error) {
	return openOn(ctx, c[attacker%len(c)], method)
}

func openOn(ctx context.Context, conn *grpc.ClientConn, method string) (stream, error) {
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	s, err := conn.NewStream(ctx, desc, method, grpc.ForceCodec(bytesCodec{}), grpc.MaxCallRecvMsgSize(64<<20))
	return stream{s}, err
}

func (s stream) receive() (text []byte, err error) {
	err = s.RecvMsg(&text)
	return text, err
}

// bytesCodec passes messages on as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}

// unlessOver is the error that ended a stream, unless the attack was over. The program knows the
// deadline of a stream, too, and may be a little earlier.
func unlessOver(ctx context.Context, err error) error {
	end, limited := ctx.Deadline()
	if ctx.Err() != nil || limited && time.Until(end) < time.Second && grpcstatus.Code(err) == codes.DeadlineExceeded {
		return nil
	}
	return err
}

// unlessStopped is the error that ended a crowd, unless it was the attack's own end.
func unlessStopped(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// awaitClients waits until the program counts so many clients.
func (r *room) awaitClients(ctx context.Context, n int) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if r.clients() >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the program counts %d clients, not %d", r.clients(), n)
		case <-again.C:
		}
	}
}

// output is the one under attack.
func (r *room) output() string {
	if r.mcp {
		return "mcp"
	}
	return "xds"
}

// clients is how many the program counts of the output under attack.
func (r *room) clients() (n int) {
	rest := probe.Get("http://" + r.server.admin + "/metrics")
	for found := true; found; {
		of := 0
		if _, rest, found = bytes.Cut(rest, []byte("\nisthmus_clients{output=\""+r.output()+"\",state=\"")); found {
			_, value, _ := bytes.Cut(rest, []byte("} "))
			_, _ = fmt.Sscan(string(value), &of)
			n += of
		}
	}
	return n
}

// outcomes count how streams ended.
type outcomes struct{ served, rejected atomic.Int64 }

// note takes in how the program ended a stream. A stream that asks for too much
// or for nonsense is rejected with one of two codes; any other is a fault of the
// program's.
func (o *outcomes) note(err error) error {
	switch code := grpcstatus.Code(err); code {
	case codes.OK:
		o.served.Add(1)
	case codes.InvalidArgument, codes.ResourceExhausted:
		o.rejected.Add(1)
	case codes.Canceled, codes.DeadlineExceeded: // by the attacker, who had seen enough
		o.served.Add(1)
	default:
		return fmt.Errorf("a stream ended with %w", err)
	}
	return nil
}
