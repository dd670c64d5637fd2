package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const garblers = 20

// openings come before random bytes, so that some are read further than others.
var openings = []string{
	"", preface, "GET / HTTP/1.1\r\n", "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n",
	"POST /api/v1/sources/files/release HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}

// garbageBytes sends random bytes to both ports.
func garbageBytes(t *testing.T, r *room) string {
	var c *crowd
	r.beside(t, func(ctx context.Context) error {
		c = newCrowd(ctx)
		end := time.Now().Add(size(4*time.Second, time.Second))
		c.send(garblers, func(ctx context.Context, i int) error {
			for random := chance(i); timeLeft(ctx, end); c.count.Add(1) {
				text := append([]byte(openings[random.IntN(len(openings))]), noise(random, 32<<10)...)
				if err := throw(ctx, []string{r.attacked(), r.server.admin}[random.IntN(2)], text); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d connections with random bytes, to both ports", c.count.Load())
}

// garbageFrames sends frames of HTTP/2 of random kinds, flags, streams and
// contents, after a good opening.
func garbageFrames(t *testing.T, r *room) string {
	var c *crowd
	r.beside(t, func(ctx context.Context) error {
		c = newCrowd(ctx)
		end := time.Now().Add(size(3*time.Second, time.Second))
		c.send(garblers, func(ctx context.Context, i int) error {
			for random := chance(i); timeLeft(ctx, end); {
				text := append(greeting(random.Uint32N(1<<31)), begin(1, []string{r.method(), sotw, "/a/b"}[random.IntN(3)])...)
				for range 1 + random.IntN(40) {
					text = append(text, randomFrame(random)...)
					c.count.Add(1)
				}
				if err := throw(ctx, r.attacked(), text); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d frames of HTTP/2 with random contents", c.count.Load())
}

// randomFrame is well-formed as a frame, most of the time.
func randomFrame(random *rand.Rand) []byte {
	streams := []uint32{0, 1, 1, 1, 3, 5, 7, random.Uint32()}
	f := frame(byte(random.IntN(12)), byte(random.IntN(256)), streams[random.IntN(len(streams))], noise(random, 200))
	if random.IntN(20) == 0 { // with a wrong length
		f[random.IntN(3)] ^= byte(1 + random.IntN(255))
	}
	return f
}

// garbageMessages sends gRPC messages of random bytes, and discovery requests
// with some bytes changed. Every stream must end with the client's fault.
func garbageMessages(t *testing.T, r *room) string {
	var o outcomes
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(garblers)
		if err != nil {
			return err
		}
		defer conns.close()
		c, end := newCrowd(ctx), time.Now().Add(size(5*time.Second, time.Second))
		c.send(garblers, func(ctx context.Context, i int) error {
			for random := chance(i); timeLeft(ctx, end); {
				if err := conns.garble(ctx, r, i, random, &o); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d streams with garbage for messages, of which %d were rejected by name", o.served.Load()+o.rejected.Load(), o.rejected.Load())
}

// garbledMethod is one of those under attack.
func (r *room) garbledMethod(random *rand.Rand) string {
	return []string{r.method(), map[bool]string{true: mcpStream, false: sotw}[r.mcp]}[random.IntN(2)]
}

// garble opens one stream with garbage.
func (c connections) garble(ctx context.Context, r *room, attacker int, random *rand.Rand, o *outcomes) error {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	s, err := c.open(ctx, attacker, r.garbledMethod(random))
	if err != nil {
		return err
	}
	good := r.everything("garbler")
	for range 1 + random.IntN(5) {
		text := noise(random, 4<<10)
		if random.IntN(2) == 0 {
			text = garbled(random, good[random.IntN(len(good))])
		}
		_ = s.SendMsg(text)
	}
	_ = s.CloseSend()
	for err == nil {
		_, err = s.receive()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return o.note(err)
}

// noise is random bytes, at most so many.
func noise(random *rand.Rand, most int) []byte {
	b := make([]byte, random.IntN(most)+1)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// garbled is a message with some bytes changed, left out or twice.
func garbled(random *rand.Rand, text []byte) []byte {
	text = slices.Clone(text)
	for range 1 + random.IntN(4) {
		at := random.IntN(len(text))
		switch random.IntN(3) {
		case 0:
			text[at] = byte(random.Uint32())
		case 1:
			text = append(text[:at], text[min(at+random.IntN(8)+1, len(text)):]...)
		default:
			text = slices.Insert(text, at, text[at:min(at+8, len(text))]...)
		}
		if len(text) == 0 {
			return []byte{0}
		}
	}
	return text
}

// throw opens a connection, sends a text, and takes a short look at what
// comes back. Only that the connection cannot be opened is an error.
func throw(ctx context.Context, address string, text []byte) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = conn.Write(text)
	_, _ = io.CopyN(io.Discard, conn, 1<<20)
	return nil
}
