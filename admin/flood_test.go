package admin_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// Whoever reaches a listener with TLS can fail the handshake as often as they like.
func TestFailedHandshakesDoNotFloodTheLog(t *testing.T) {
	var log bytes.Buffer // is read once the server has ended, as the clients have, one after the other
	server := admin.New(admin.Parts{
		Access: admin.Access{TLS: tlsOf(t, authority.New(t, "ca"))}, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	listener := loopback(t)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	for range 200 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the server closes it, when it has logged why
		_ = conn.Close()
	}
	server.Stop(context.WithoutCancel(t.Context()))
	if err := <-done; err != nil {
		t.Error(err)
	}
	text := log.String()
	if n := strings.Count(text, "TLS handshake error"); n < 10 || n > 100 || strings.Count(text, "\n") != n {
		t.Errorf("%d of 200 were logged:\n%s", n, text)
	}
	if !strings.Contains(text, `level=WARN msg="http: TLS handshake error`) || !strings.Contains(text, "listener=admin") {
		t.Errorf("they are logged as\n%s", text)
	}
}
