package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// given is how long the program gives a connection to become useful.
const given = 10 * time.Second

// silent opens connections that say nothing, half of what opens HTTP/2, or all
// of it and nothing more. The program is to close the first two kinds by
// itself; the third may stay idle for a minute, and the attacker ends it.
func silent(t *testing.T, r *room) string {
	n := size(1200, 60)
	r.beside(t, func(ctx context.Context) error {
		return r.hold(ctx, n, [][]byte{nil, []byte(preface)[:10], greeting(1 << 16)}, 2)
	})
	return fmt.Sprintf("%d connections that say nothing, %[1]d with half a preface, %[1]d with a preface and no stream", n)
}

// handshakes opens connections to a listener with TLS that never finish the
// handshake: they say nothing, half of a hello, or leave the answer to one.
func handshakes(t *testing.T, r *room) string {
	n, hello := size(800, 40), clientHello(t)
	r.beside(t, func(ctx context.Context) error {
		return r.hold(ctx, n, [][]byte{nil, hello[:len(hello)/2], hello}, 3)
	})
	return fmt.Sprintf("TLS: %d connections that say nothing, %[1]d with half a hello, %[1]d that leave the answer to one", n)
}

// hold opens n connections with each of some openings and keeps them. Those of
// the first kinds it then sees closed by the program, at full size.
func (r *room) hold(ctx context.Context, n int, openings [][]byte, closed int) error {
	c := newCrowd(ctx)
	for kind, opening := range openings {
		c.send(n, func(ctx context.Context, _ int) error {
			conn, err := r.connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.Write(opening); err != nil {
				return err
			}
			switch {
			case !*full:
				_ = conn.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.Copy(io.Discard, conn)
				return nil
			case kind < closed:
				return awaitClosed(conn)
			default: // as long as the others
				_ = conn.SetReadDeadline(time.Now().Add(given))
				_, _ = io.Copy(io.Discard, conn)
				return nil
			}
		})
	}
	return c.wait()
}

// withTLS has the listener show a certificate. The good client trusts it.
func withTLS(t *testing.T) setup {
	t.Helper()
	a, dir := authority.New(t, "hostile"), t.TempDir()
	pair := a.Issue("127.0.0.1")
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, text := range map[string][]byte{cert: pair.Cert, key: pair.Key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return setup{tls: a.Client(), files: fmt.Sprintf(", tls: {certFile: %q, keyFile: %q}", cert, key)}
}

// clientHello is the first thing that a TLS client says.
func clientHello(t *testing.T) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		defer client.Close()
		_ = tls.Client(client, &tls.Config{ServerName: "isthmus", MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}).Handshake()
	}()
	hello := make([]byte, 16<<10)
	n, err := server.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	return hello[:n]
}
