package envoy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestAnEdgeIsNotReachedThroughItself has a registry list the admin interface of the edge's
// Envoy, a unix socket and the edge itself. None of them is reached from outside, by the
// port that does not allow local addresses; where one does, the edge still is not.
func TestAnEdgeIsNotReachedThroughItself(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		closed, open := freePort(t), freePort(t)
		m.Envoy = fmt.Sprintf(`edge: {ports: [{number: %d, hosts: ["*.closed.example"]}, {number: %d, hosts: ["*.open.example"], localAddresses: allow}]}`, closed, open)
		web, socket := startBackend(t, "web", "web"), startOnSocket(t)
		m.Folder.write(t, "web", lone("web.open.example", "127.0.0.1", web.Port))
		m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta})
		admin := adminOf(t, p)
		m.Folder.write(t, "itself",
			lone("admin.closed.example", "127.0.0.1", uint32(admin.Port())), lone("mapped.closed.example", "::ffff:127.0.0.1", uint32(admin.Port())),
			lone("socket.closed.example", "unix://"+socket, 0), lone("web.closed.example", "127.0.0.1", web.Port),
			lone("loop.open.example", "127.0.0.1", open), lone("mapped.open.example", "::ffff:127.0.0.1", open), lone("socket.open.example", "unix://"+socket, 0),
		)
		for _, host := range []string{"web.open.example", "socket.open.example"} {
			await(t, host+" to answer", func() error { return answers(t.Context(), open, host, strings.TrimSuffix(host, ".open.example")) })
		}
		for _, host := range []string{"admin.closed.example", "mapped.closed.example", "socket.closed.example", "web.closed.example"} {
			await(t, host+" to have no endpoint", func() error { return quits(t, closed, host, http.StatusServiceUnavailable) })
		}
		for _, host := range []string{"loop.open.example", "mapped.open.example"} {
			await(t, host+" to have no endpoint", func() error { return quits(t, open, host, http.StatusServiceUnavailable) })
		}
		if err := quits(t, open, "web.closed.example", http.StatusNotFound); err != nil {
			t.Error(err) // another port exposes it
		}
		if err := answers(t.Context(), open, "web.open.example", "web"); err != nil {
			t.Error("Envoy has ended: ", err)
		}
	})
}

// lone is a service with one endpoint; a port of 0 is that of a unix socket.
func lone(host, address string, number uint32) service {
	to := endpoint{Address: address}
	if number > 0 {
		to.Ports = map[string]uint32{"http": number}
	}
	return service{Spec: serviceSpec{
		Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}}, Endpoints: []endpoint{to},
	}}
}

// adminOf is where an Envoy answers its operators.
func adminOf(t *testing.T, p *proxy.Proxy) netip.AddrPort {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, p.Workload+".admin"))
	if err != nil {
		t.Fatal(err)
	}
	address, err := netip.ParseAddrPort(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// quits asks a host to end its Envoy, and checks the status of the answer.
func quits(t *testing.T, number uint32, host string, want int) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/quitquitquit", number), http.NoBody)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != want {
		return fmt.Errorf("%s answers %d, not %d", host, response.StatusCode, want)
	}
	return nil
}

// startOnSocket answers as the service "socket" on a unix socket.
func startOnSocket(t *testing.T) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "edge") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(answeredBy, "socket") })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return path
}
