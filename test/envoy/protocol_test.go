package envoy_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestPortWithoutProtocolIsSpokenToAsTheClientSpeaks sends HTTP/1.1 and HTTP/2
// through an Envoy to ports of several protocols. Without one, the backend is
// spoken to as Envoy is; so gRPC gets through, and so does a server of HTTP/1.1.
func TestPortWithoutProtocolIsSpokenToAsTheClientSpeaks(t *testing.T) {
	const one, two = "HTTP/1.1", "HTTP/2.0"
	seen := map[string]map[string]string{ // by the protocol of the port, what a backend sees of each client
		"":     {one: one, two: two},
		"HTTP": {one: one, two: one},
		"GRPC": {one: two, two: two},
	}
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		b := startBackend(t, "spoken", "spoken")
		for protocol := range seen {
			host := hostOf(protocol)
			m.Folder.write(t, host, service{Spec: serviceSpec{
				Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "main", Protocol: protocol}},
				Endpoints: []endpoint{b.endpoint("main")},
			}})
		}
		m.Serve("")
		p := m.Connect(delta)
		m.AwaitActive("the ports")
		for protocol, clients := range seen {
			for client, want := range clients {
				got, err := askIn(t, client, p, clusterName(hostOf(protocol), 80))
				if err != nil || got != want {
					t.Errorf("a client of %s at a port of protocol %q: its backend was spoken to in %q, not %s: %v", client, protocol, got, want, err)
				}
			}
		}
	})
}

func hostOf(protocol string) string { return slug(cmp.Or(protocol, "none")) + ".example.com" }

// askIn makes a request in a version of HTTP, and returns the one in which the
// backend was asked.
func askIn(t *testing.T, version string, p *proxy.Proxy, cluster string) (string, error) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == "HTTP/1.1")
	protocols.SetUnencryptedHTTP2(version == "HTTP/2.0")
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Address+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("x-cluster", cluster)
	answer, err := (&http.Client{Transport: transport, Timeout: until.Patience}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	switch body, err := io.ReadAll(answer.Body); {
	case err != nil:
		return "", err
	case answer.StatusCode != http.StatusOK || answer.Proto != version:
		return "", fmt.Errorf("%s %s: %.300s", answer.Proto, answer.Status, body)
	}
	return answer.Header.Get(spokenIn), nil
}
