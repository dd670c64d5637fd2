package envoy_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestEdgeLeadsToServices has Envoys at the edge lead what comes to the configured ports
// to the services that they may see: by authority, by the host in a handshake, by port.
func TestEdgeLeadsToServices(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) { edgeLeadsToServices(t, delta, 500) })
}

// TestEdgeLeadsToSingleHosts has them take these hosts one by one where their streams can, and
// turn to the whole route configuration and back as services go and come.
func TestEdgeLeadsToSingleHosts(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) { edgeLeadsToServices(t, delta, 4) })
}

func edgeLeadsToServices(t *testing.T, delta bool, from int) {
	m := newMesh(t)
	web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
	secure := startSecureBackend(t)
	requests, handshakes, connections := freePort(t), freePort(t), freePort(t)
	m.Envoy = fmt.Sprintf(`vhds: {from: %[5]d}, edge: {ports: [{number: %[1]d, hosts: [%[4]s], localAddresses: allow}, {number: %[2]d, protocol: TLS, hosts: [%[4]s], localAddresses: allow},
		{number: %[3]d, protocol: TCP, hosts: [raw.example.com], localAddresses: allow}]}`, requests, handshakes, connections, `"*.example.com"`, from)
	on := func(host string, b *backend, ports ...port) service {
		s := service{Spec: serviceSpec{Hosts: []string{host}, Resolution: "STATIC", Ports: ports}}
		to := endpoint{Address: b.Address, Ports: map[string]uint32{}}
		for _, p := range ports {
			to.Ports[p.Name] = b.Port
		}
		s.Spec.Endpoints = []endpoint{to}
		return s
	}
	web9000 := port{Number: 9000, Name: "http", Protocol: "HTTP"}
	m.Folder.write(t, "web", on("web.example.com", web, port{Number: 70, Name: "raw", Protocol: "TCP"}, web9000))
	m.Folder.write(t, "api", on("*.api.example.com", api, port{Number: requests, Name: "http", Protocol: "HTTP2"}, port{Number: 10, Name: "other", Protocol: "HTTP"}))
	hidden := on("hidden.example.com", web, web9000)
	hidden.Namespace, hidden.Spec.ExportTo = "private", []string{"."}
	m.Folder.write(t, "hidden", hidden)
	m.Folder.write(t, "raw", on("raw.example.com", web, port{Number: connections, Name: "raw", Protocol: "TCP"}))
	sealed := on("sealed.example.com", web, port{Number: 443, Name: "tls", Protocol: "TLS"})
	sealed.Spec.Endpoints = []endpoint{{Address: "127.0.0.1", Ports: map[string]uint32{"tls": secure}}}
	m.Folder.write(t, "sealed", sealed)
	nowhere := on("nowhere.example.com", web, web9000)
	nowhere.Spec.Resolution, nowhere.Spec.Endpoints = "NONE", nil
	m.Folder.write(t, "nowhere", nowhere)
	m.Serve("")
	p := m.connectWith(proxy.Config{Delta: delta})
	m.AwaitActive("the services")

	for host, want := range map[string]string{"web.example.com": "web", "WEB.example.com.:8080": "web", "v1.api.example.com": "api"} {
		await(t, host+" to answer", func() error { return answers(t.Context(), requests, host, want) })
	}
	for _, host := range []string{"hidden.example.com", "nowhere.example.com", "raw.example.com", "web", "127.0.0.1"} {
		if err := isStatus(t, requests, host, http.StatusNotFound); err != nil {
			t.Error(err)
		}
	}
	await(t, "the port without requests to answer", func() error { return answers(t.Context(), connections, "whatever", "web") })
	await(t, "the handshake to be led on", func() error { return shakesHands(t, handshakes, "sealed.example.com") })
	if err := shakesHands(t, handshakes, "other.example.com"); err == nil {
		t.Error("a handshake of an unknown host is answered")
	}

	m.Folder.write(t, "api", on("late.example.com", api, web9000))
	await(t, "a service that comes to answer", func() error { return answers(t.Context(), requests, "late.example.com", "api") })
	await(t, "a service that goes to go", func() error { return isStatus(t, requests, "v1.api.example.com", http.StatusNotFound) })
	m.Folder.remove(t, "raw")
	await(t, "the port of a service that goes to close connections", func() error {
		if answers(t.Context(), connections, "whatever", "web") == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	routes := fmt.Sprintf("http.%d.hosts", requests)
	if hosts, err := p.Hosts(t.Context(), routes); err != nil || (len(hosts) > 0) != (delta && from == 4) {
		t.Errorf("%s has the hosts %v (%v)", routes, hosts, err)
	}
	if from == 4 { // of which one goes and comes back
		m.Folder.remove(t, "hidden")
		await(t, "the edge to lead to the whole route configuration", func() error { return leadsEdgeTo(t, p, requests, fmt.Sprintf("http.%d", requests)) })
		await(t, "a host to answer", func() error { return answers(t.Context(), requests, "late.example.com", "api") })
		m.Folder.write(t, "hidden", hidden)
		if delta {
			await(t, "the edge to lead to single hosts", func() error { return leadsEdgeTo(t, p, requests, routes) })
		}
		await(t, "a host to answer again", func() error { return answers(t.Context(), requests, "web.example.com", "web") })
	}
	m.MustBeSettled()
	if err := p.Deprecated(t.Context()); err != nil {
		t.Error(err)
	}
}

// leadsEdgeTo checks which route configuration the listener of a port of the edge leads to.
func leadsEdgeTo(t *testing.T, p *proxy.Proxy, number uint32, routes string) error {
	t.Helper()
	listeners, err := p.Listeners(t.Context())
	if err != nil {
		return err
	}
	if l := listeners[fmt.Sprintf("0.0.0.0_%d", number)]; !strings.Contains(string(l.Content), `"`+routes+`"`) {
		return fmt.Errorf("the listener does not lead to %s: %s", routes, l.Content)
	}
	return nil
}

// isStatus checks with what a request for a host is answered at a port of loopback.
func isStatus(t *testing.T, number uint32, host string, want int) error {
	t.Helper()
	response, err := requested(t.Context(), number, host)
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

// startSecureBackend ends TLS itself, as example.com, and returns the port that it does it on.
func startSecureBackend(t *testing.T) uint32 {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return uint32(server.Listener.Addr().(*net.TCPAddr).Port)
}

// shakesHands checks that the secure backend answers a handshake that names a host.
func shakesHands(t *testing.T, number uint32, host string) error {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(number)))
	if err != nil {
		return err
	}
	defer connection.Close()
	names := connection.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames
	if !strings.Contains(strings.Join(names, " "), "example.com") {
		return fmt.Errorf("the certificate is of %v", names)
	}
	return nil
}
