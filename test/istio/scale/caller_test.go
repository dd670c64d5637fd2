package scale_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// startBackend starts what is behind all endpoints, which are on loopback: it answers
// with the address that was called. It returns its port.
func startBackend(tb testing.TB) (port int64) {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp4", ":0")
	if err != nil {
		tb.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		_, _ = io.WriteString(w, at.IP.String()) // a caller that is gone needs no answer
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	tb.Cleanup(func() {
		_ = server.Close() // the listener's, which is closed
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
	})
	return int64(listener.Addr().(*net.TCPAddr).Port)
}

// freePort is one on which nobody listens, as objects have it.
func freePort(tb testing.TB) int64 {
	tb.Helper()
	text, err := cluster.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// caller calls through an Envoy, on a connection of its own.
type caller struct {
	*proxy.Proxy
	client *http.Client
}

func newCaller(p *proxy.Proxy) *caller { return &caller{p, &http.Client{Transport: &http.Transport{}}} }

func (c *caller) stop() {
	c.client.CloseIdleConnections()
	c.Stop()
}

// between is how long a caller waits from one call to the next.
const between = 10 * time.Millisecond

// await calls a cluster until an endpoint answers. Every call is to be answered.
func (c *caller) await(tb testing.TB, cluster, endpoint string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	again := time.NewTicker(between)
	defer again.Stop()
	for {
		from, err := c.call(ctx, cluster)
		if err != nil {
			tb.Errorf("%s is to be answered by %s: %v", cluster, endpoint, err)
		}
		if err != nil || from == endpoint {
			return
		}
		<-again.C
	}
}

// call returns which endpoint answers.
func (c *caller) call(ctx context.Context, cluster string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Address, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Cluster", cluster)
	answer, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	from, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, from)
	}
	return string(from), err
}
