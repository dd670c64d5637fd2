package envoy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestSidecarObeysTheConfiguration has Envoys take everything that can be said of hosts,
// and do it.
func TestSidecarObeysTheConfiguration(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		log := filepath.Join(m.Dir, "access.log")
		m.Envoy = fmt.Sprintf(`
    outbound: registry,
    defaults: {
      connectTimeout: 2s, loadBalancer: {simple: ROUND_ROBIN}, retries: {attempts: 2, perTryTimeout: 20s, retryOn: "connect-failure,503"},
      outlierDetection: {consecutive5xxErrors: 0, consecutiveGatewayErrors: 7, minHealthPercent: 50},
      circuitBreakers: {maxConnections: 100, maxRequests: 200}, tcpKeepalive: {probes: 3, time: 30s, interval: 5s},
      accessLog: {path: %q}, tracing: {openTelemetry: {host: otel.example.com, port: 4317}, sampling: 100},
    },
    hosts: [
      {host: once.example.com, retries: {attempts: 0}, circuitBreakers: {maxConnections: 1}},
      {host: "*.hashed.example.com", loadBalancer: {consistentHash: {httpHeaderName: x-user}}},
      {host: "raw.example.com", loadBalancer: {consistentHash: {useSourceIp: true}}},
    ]`, log)
		web, collector := startBackend(t, "web", "web"), startBackend(t, "otel", "otel")
		often, once := startFailing(t), startFailing(t)
		shared, raw := freePort(t), freePort(t)
		on := func(host, protocol string, number, at uint32) service {
			return service{Spec: serviceSpec{
				Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: number, Name: "main", Protocol: protocol}},
				Endpoints: []endpoint{{Address: "127.0.0.1", Ports: map[string]uint32{"main": at}}},
			}}
		}
		m.Folder.write(t, "all",
			on("web.example.com", "HTTP", shared, web.Port), on("a.hashed.example.com", "HTTP", shared, web.Port),
			on("often.example.com", "HTTP", shared, often.port), on("once.example.com", "HTTP", shared, once.port),
			on("raw.example.com", "TCP", raw, web.Port), on("otel.example.com", "GRPC", 4317, collector.Port),
			service{Name: "socket", Spec: serviceSpec{
				Hosts: []string{"socket.example.com"}, Resolution: "STATIC", Ports: []port{{Number: 70, Name: "main", Protocol: "TCP"}},
				Endpoints: []endpoint{{Address: "unix:///tmp/isthmus-nobody"}},
			}})
		m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		m.AwaitActive("the services")

		for _, host := range []string{"web.example.com", "a.hashed.example.com"} {
			await(t, host+" to answer", func() error { return answers(t.Context(), shared, host, "web") })
		}
		await(t, "the port without HTTP to answer", func() error { return answers(t.Context(), raw, "whatever", "web") })
		if err := isStatus(t, shared, "unknown.example.com", http.StatusBadGateway); err != nil {
			t.Error(err)
		}
		if err := isClosed(t, shared); err != nil {
			t.Error(err)
		}
		for host, want := range map[string]struct {
			of       *failing
			attempts int64
		}{"often.example.com": {often, 3}, "once.example.com": {once, 1}} {
			before := want.of.requests.Load()
			if err := isStatus(t, shared, host, http.StatusServiceUnavailable); err != nil {
				t.Error(err)
			}
			if got := want.of.requests.Load() - before; got != want.attempts {
				t.Errorf("%s was sent %d requests for one, want %d", host, got, want.attempts)
			}
		}
		await(t, "the access log", func() error {
			return isLogged(log, `"web.example.com"`, `502 - direct_response`, "outbound|"+fmt.Sprint(raw)+"||raw.example.com")
		})
		await(t, "spans to arrive", func() error {
			if collector.requests.Load() == 0 {
				return errors.New("the collector was sent nothing")
			}
			return nil
		})
		m.MustBeSettled()
		if err := p.Deprecated(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// failing is a server that is unavailable.
type failing struct {
	port     uint32
	requests atomic.Int64
}

func startFailing(t *testing.T) *failing {
	t.Helper()
	f := &failing{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	f.port = uint32(server.Listener.Addr().(*net.TCPAddr).Port)
	return f
}

// isClosed checks that a connection of no known protocol to a port of loopback is closed.
func isClosed(t *testing.T, number uint32) error {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(number)))
	if err != nil {
		return err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(until.Patience))
	if _, err := connection.Write([]byte("\x00\x01\x02 no request\r\n\r\n")); err != nil {
		return err
	}
	if answer, err := io.ReadAll(connection); len(answer) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("it is answered %q, %w", answer, err)
	}
	return nil
}

// isLogged checks that a file says all of some texts.
func isLogged(file string, texts ...string) error {
	all, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if !strings.Contains(string(all), text) {
			return fmt.Errorf("%q is not in:\n%s", text, all)
		}
	}
	return nil
}
