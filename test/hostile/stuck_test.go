package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// unread subscribes to everything and never reads, while half of the catalog
// changes without end. Half of the clients leave it in the socket, the others
// give no room on the stream.
func unread(t *testing.T, r *room) string {
	n := size(300, 20)
	requests := r.everything("unread")
	churned := 0
	r.beside(t, func(ctx context.Context) error {
		c := newCrowd(ctx)
		var conns []net.Conn
		defer func() {
			for _, conn := range conns {
				_ = conn.Close()
			}
		}()
		for i := range n {
			conn, err := r.connect(ctx)
			if err != nil {
				return err
			}
			conns = append(conns, conn)
			window := uint32(1 << 30)
			if i%2 == 0 {
				window = 1 << 10
			}
			_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			opening := append(greeting(window), begin(1, r.method())...)
			for _, m := range requests {
				opening = append(opening, message(1, m)...)
			}
			if _, err := conn.Write(opening); err != nil {
				return err
			}
		}
		if err := r.awaitClients(ctx, n+1); err != nil {
			return err
		}
		c.send(1, func(ctx context.Context, _ int) (err error) {
			churned, err = r.churn(ctx, size(6*time.Second, time.Second))
			return err
		})
		return c.wait()
	})
	return fmt.Sprintf("%d clients of everything that never read, %d changes", n, churned)
}

// halfSent begins requests of 30 MiB, sends all of each that the program takes but
// for the last byte, and keeps the streams open.
func halfSent(t *testing.T, r *room) string {
	const large = 30 << 20
	var began atomic.Int64
	n := size(40, 4)
	r.beside(t, func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, size(8*time.Second, time.Second))
		defer stop()
		c := newCrowd(ctx)
		c.send(n, func(ctx context.Context, i int) error {
			conn, err := r.connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
			sender := halfSender{conn: conn, method: r.method(), left: map[uint32]int{}, window: map[uint32]int{}}
			for stream := uint32(1); stream < 20; stream += 2 {
				sender.left[stream], sender.window[stream] = large-1, 64<<10-5
				began.Add(1)
			}
			return sender.run()
		})
		return unlessStopped(c.wait())
	})
	return fmt.Sprintf("%d requests of 30 MiB begun and not ended", began.Load())
}

// halfSender sends requests as far as it may.
type halfSender struct {
	conn   net.Conn
	method string
	left   map[uint32]int // bytes of each request
	window map[uint32]int // bytes that may be sent of it now
}

func (h *halfSender) run() error {
	if _, err := h.conn.Write(greeting(1 << 20)); err != nil {
		return nil //nolint:nilerr // the attack was over
	}
	for stream := range h.left {
		text := append(begin(stream, h.method), frame(frameData, 0, stream, binary.BigEndian.AppendUint32([]byte{0}, uint32(h.left[stream]+1)))...)
		if _, err := h.conn.Write(text); err != nil {
			return nil //nolint:nilerr // as above
		}
		if !h.send(stream) {
			return nil
		}
	}
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(h.conn, head); err != nil {
			return nil //nolint:nilerr // to close the connection is a good answer
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(h.conn, payload); err != nil {
			return nil //nolint:nilerr // as above
		}
		stream := binary.BigEndian.Uint32(head[5:])
		if _, known := h.left[stream]; head[3] != frameWindowUpdate || !known {
			continue
		}
		h.window[stream] += int(binary.BigEndian.Uint32(payload))
		if !h.send(stream) {
			return nil
		}
	}
}

// send sends what a stream's window lets it, and reports whether the connection goes on.
func (h *halfSender) send(stream uint32) bool {
	for zeros := make([]byte, 16<<10); min(h.window[stream], h.left[stream]) > 0; {
		part := zeros[:min(h.window[stream], h.left[stream], len(zeros))]
		if _, err := h.conn.Write(frame(frameData, 0, stream, part)); err != nil {
			return false
		}
		h.window[stream] -= len(part)
		h.left[stream] -= len(part)
	}
	return true
}

// unanswered subscribes to everything, reads, and never answers.
func unanswered(t *testing.T, r *room) string {
	n, churned := size(300, 20), 0
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(10)
		if err != nil {
			return err
		}
		defer conns.close()
		reading, stop := context.WithCancel(ctx)
		c := newCrowd(reading)
		c.send(n, func(ctx context.Context, i int) error {
			s, err := conns.open(ctx, i, r.method())
			if err != nil {
				return err
			}
			for _, m := range r.everything(fmt.Sprint("unanswered-", i)) {
				_ = s.SendMsg(m)
			}
			for err == nil {
				_, err = s.receive()
			}
			return unlessOver(ctx, err)
		})
		err = r.awaitClients(ctx, n+1)
		if err == nil {
			churned, err = r.churn(ctx, size(6*time.Second, time.Second))
		}
		stop()
		return errors.Join(err, unlessStopped(c.wait()))
	})
	return fmt.Sprintf("%d clients of everything that read and never answer, %d changes", n, churned)
}

// nackEverything answers every response with a NACK: half of the clients once
// for each, the others again and again without being asked.
func nackEverything(t *testing.T, r *room) string {
	n, c := size(200, 10), (*crowd)(nil)
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(10)
		if err != nil {
			return err
		}
		defer conns.close()
		nacking, stop := context.WithCancel(ctx)
		defer stop()
		c = newCrowd(nacking)
		c.send(n, func(ctx context.Context, i int) error {
			s, err := conns.open(ctx, i, r.method())
			if err != nil {
				return unlessOver(ctx, err)
			}
			for _, m := range r.everything(fmt.Sprint("nack-", i)) {
				_ = s.SendMsg(m)
			}
			for {
				text, err := s.receive()
				if err != nil {
					return unlessOver(ctx, err)
				}
				for range 1 + i%2*100 {
					_ = s.SendMsg(r.nackOf(text))
					c.count.Add(1)
				}
			}
		})
		_, err = r.churn(ctx, size(6*time.Second, time.Second))
		stop()
		return errors.Join(err, unlessStopped(c.wait()))
	})
	return fmt.Sprintf("%d clients of everything, %d NACKs", n, c.count.Load())
}

// ackOf is an ACK of a delta response, and nackOf a NACK of what is under attack.
func ackOf(text []byte) []byte { return answerTo(text, nil) }

func (r *room) nackOf(text []byte) []byte {
	if r.mcp {
		return sinkNACK(text)
	}
	return answerTo(text, &status.Status{Code: 3, Message: "I take nothing"})
}

func answerTo(text []byte, wrong *status.Status) []byte {
	var response discoveryv3.DeltaDiscoveryResponse
	_ = proto.Unmarshal(text, &response) // what cannot be read is answered without a nonce
	return marshal(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce(), ErrorDetail: wrong,
	})
}

// everything are the requests of a delta client that subscribes to all clusters
// and listeners, and to the load assignments of all clusters by name.
func everything(id string) [][]byte {
	return [][]byte{
		marshal(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node(id, "shop", "envoy"), TypeUrl: xdsclient.CDS, ResourceNamesSubscribe: []string{"*"}}),
		marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdsclient.EDS, ResourceNamesSubscribe: clusterNames()}),
		marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdsclient.LDS, ResourceNamesSubscribe: []string{"*"}}),
	}
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // only text that is not UTF-8 fails, and all of it is our own
	}
	return b
}

// churn changes the services that the good client does not time, for a while,
// and returns how often.
func (r *room) churn(ctx context.Context, d time.Duration) (changes int, err error) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(d); timeLeft(ctx, end); changes++ {
		if _, _, err := r.registry.change(services/2 + changes%(services/2)); err != nil {
			return changes, err
		}
		<-again.C
	}
	return changes, nil
}
