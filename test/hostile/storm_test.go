package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const stormers = 20

// streamStorm opens streams, asks for everything, and ends them at once, or
// after the first response.
func streamStorm(t *testing.T, r *room) string {
	var o outcomes
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(stormers)
		if err != nil {
			return err
		}
		defer conns.close()
		c, end := newCrowd(ctx), time.Now().Add(size(4*time.Second, time.Second))
		c.send(2*stormers, func(ctx context.Context, i int) error {
			for n := 0; timeLeft(ctx, end); n++ {
				if err := o.visit(ctx, r, conns[i%len(conns)], fmt.Sprint("storm-", i), n%2 == 0); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d streams of everything opened and closed, %d let in", o.served.Load()+o.rejected.Load(), o.served.Load())
}

// connectionStorm has every stream on a connection of its own.
func connectionStorm(t *testing.T, r *room) string {
	var o outcomes
	r.beside(t, func(ctx context.Context) error {
		c, end := newCrowd(ctx), time.Now().Add(size(3*time.Second, time.Second))
		c.send(stormers, func(ctx context.Context, i int) error {
			for n := 0; timeLeft(ctx, end); n++ {
				conn, err := grpc.NewClient(r.target(), r.options()...)
				if err != nil {
					return err
				}
				err = o.visit(ctx, r, conn, fmt.Sprint("storm-", i), n%2 == 0)
				_ = conn.Close()
				if err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d connections with a stream of everything opened and closed, %d let in", o.served.Load()+o.rejected.Load(), o.served.Load())
}

// visit opens a stream and leaves, before or after the first response.
func (o *outcomes) visit(ctx context.Context, r *room, conn *grpc.ClientConn, id string, stay bool) error {
	ctx, leave := context.WithTimeout(ctx, until.Patience)
	defer leave()
	s, err := openOn(ctx, conn, r.method())
	if err != nil {
		return o.note(err)
	}
	for _, m := range r.everything(id) {
		_ = s.SendMsg(m)
	}
	if stay {
		_, err = s.receive()
	}
	return o.note(err)
}

// resetStorm opens streams and resets them in the same breath, as fast as that can
// be sent, and connects again when a connection is closed for it.
func resetStorm(t *testing.T, r *room) string {
	var c *crowd
	r.beside(t, func(ctx context.Context) error {
		end := time.Now().Add(size(6*time.Second, time.Second))
		ask, method := r.everything("reset")[0], r.method()
		c = newCrowd(ctx)
		c.send(stormers, func(ctx context.Context, _ int) error {
			for timeLeft(ctx, end) {
				if err := r.resetAll(ctx, method, ask, end, c); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d streams opened and reset at once, on %d connections at a time", c.count.Load(), stormers)
}

// resetAll opens and resets streams on one connection until the program closes
// it or the time is over.
func (r *room) resetAll(ctx context.Context, method string, ask []byte, end time.Time, c *crowd) error {
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, conn) }()
	defer func() { conn.Close(); <-drained }()
	if _, err := conn.Write(greeting(1 << 20)); err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(end)
	for n := uint32(1); timeLeft(ctx, end); n += 2 {
		if err := resetOne(conn, n, method, ask); err != nil {
			return nil //nolint:nilerr // to close the connection is a good answer
		}
		c.count.Add(1)
	}
	return nil
}

func resetOne(conn net.Conn, n uint32, method string, ask []byte) error {
	text := begin(n, method)
	if n%4 == 1 {
		text = append(text, message(n, ask)...)
	}
	_, err := conn.Write(append(text, reset(n)...))
	return err
}
