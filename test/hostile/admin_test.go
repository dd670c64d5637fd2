package hostile

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// pages are those of the admin address that say most.
var pages = []string{"/metrics", "/api/v1/services", "/api/v1/clients", "/api/v1/sources", "/readyz?verbose"}

// slowAdmin asks for pages of the admin address again and again without reading
// any, reads one byte at a time, and sends requests one byte at a time.
func slowAdmin(t *testing.T, r *room) string {
	n := size(100, 10)
	r.beside(t, func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, size(8*time.Second, time.Second))
		defer stop()
		c := newCrowd(ctx)
		for _, attack := range []func(context.Context, net.Conn, string){neverRead, readSlowly, askSlowly} {
			c.send(n, func(ctx context.Context, i int) error {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.server.admin)
				if err != nil {
					return err
				}
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
				_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				attack(ctx, conn, pages[i%len(pages)])
				<-ctx.Done()
				return nil
			})
		}
		return unlessStopped(c.wait())
	})
	return fmt.Sprintf("%d connections that never read pages, %[1]d that read slowly, %[1]d that ask slowly", n)
}

func ask(page string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: isthmus\r\n\r\n", page)
}

// neverRead asks for a page until nothing more can be sent.
func neverRead(ctx context.Context, conn net.Conn, page string) {
	for ctx.Err() == nil {
		if _, err := conn.Write(bytes.Repeat(ask(page), 10)); err != nil {
			return
		}
	}
}

// readSlowly asks for a page many times, and reads some bytes a second.
func readSlowly(ctx context.Context, conn net.Conn, page string) {
	if _, err := conn.Write(bytes.Repeat(ask(page), 100)); err != nil {
		return
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for one := make([]byte, 1); ctx.Err() == nil; <-again.C {
		if _, err := conn.Read(one); err != nil {
			return
		}
	}
}

// askSlowly sends a request that never ends, some bytes a second.
func askSlowly(ctx context.Context, conn net.Conn, page string) {
	if _, err := conn.Write(bytes.TrimSuffix(ask(page), []byte("\r\n"))); err != nil {
		return
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for ; ctx.Err() == nil; <-again.C {
		if _, err := conn.Write([]byte("a")); err != nil {
			return
		}
	}
}
