package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Frames of HTTP/2, written by hand: what an attacker sends a library rejects
// to write.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	endHeaders = 0x4

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	ads     = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
	delta   = ads + "DeltaAggregatedResources"
	sotw    = ads + "StreamAggregatedResources"
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// greeting is how a client opens a connection. Its window is the most that a
// server may send on a stream before the client makes room.
func greeting(window uint32) []byte {
	const initialWindowSize = 4
	setting := binary.BigEndian.AppendUint32([]byte{0, initialWindowSize}, window)
	b := append([]byte(preface), frame(frameSettings, 0, 0, setting)...)
	if const64k := uint32(1<<16 - 1); window > const64k { // the connection's own begins with that
		b = append(b, frame(frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, window-const64k))...)
	}
	return b
}

// begin opens a stream for a method. Its headers are not compressed.
func begin(stream uint32, method string) []byte {
	return frame(frameHeaders, endHeaders, stream, headerBlock(method))
}

func headerBlock(method string) (block []byte) {
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", method},
		{":authority", "isthmus"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		block = append(block, 0) // literal, not to be remembered, with a new name
		for _, text := range field {
			block = append(append(block, byte(len(text))), text...)
		}
	}
	return block
}

// message is a gRPC message on a stream.
func message(stream uint32, text []byte) []byte {
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))
	return frame(frameData, 0, stream, append(body, text...))
}

func reset(stream uint32) []byte { return frame(frameReset, 0, stream, []byte{0, 0, 0, 8}) }

// awaitClosed reads from a connection until the other side has closed it.
func awaitClosed(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(until.Patience))
	n, err := io.Copy(io.Discard, conn)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // Copy does not wrap
		return fmt.Errorf("it is still open after %v, with %d bytes received", until.Patience, n)
	}
	return nil
}

// crowd is many attackers at once. They end when the first of them fails.
type crowd struct {
	ctx     context.Context //nolint:containedctx // it is the crowd's own
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	count   atomic.Int64 // of what they did
}

func newCrowd(ctx context.Context) *crowd {
	c := &crowd{}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// send has n attackers begin.
func (c *crowd) send(n int, do func(ctx context.Context, i int) error) {
	for i := range n {
		c.running.Go(func() {
			if err := do(c.ctx, i); err != nil {
				c.cancel(err)
			}
		})
	}
}

// wait waits for all attackers to end, and returns why if one of them failed.
func (c *crowd) wait() error {
	c.running.Wait()
	err := context.Cause(c.ctx)
	c.cancel(nil)
	return err
}

// chance is the randomness of one attacker: the same in every run of a seed.
func chance(attacker int) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(attacker))) //nolint:gosec // nothing is secret
}

// until reports whether there is time left, for loops of attackers.
func timeLeft(ctx context.Context, end time.Time) bool {
	return ctx.Err() == nil && time.Now().Before(end)
}
