package envoy_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// behindSidecar is a service whose endpoint is the sidecar of its workload.
const behindSidecar = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api, namespace: shop}
spec:
  hosts: [api.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: %d, name: http, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.1, ports: {http: %d}, labels: {security.istio.io/tlsMode: istio}, serviceAccount: api}
`

// mutual is two Envoys with nothing but a bootstrap and a token, and a service behind one of
// them.
type mutual struct {
	*mesh
	service, inbound uint32 // ports
	server, client   *proxy.Proxy
}

func newMutual(t *testing.T, delta bool) *mutual {
	t.Helper()
	m := &mutual{mesh: newMesh(t), service: freePort(t), inbound: freePort(t)}
	ca, trusted := newIssuer(t, m.Dir), authority.New(t, "authority")
	control := newIdentity(t, filepath.Join(m.Dir, "control"), isthmusIdentity)
	control.issue(trusted)
	control.replace(trusted)
	m.Identity = fmt.Sprintf("trustDomain: mesh.example, authority: {dir: %q}", ca.dir)
	m.Envoy = "trustDomain: mesh.example, mtls: {mode: PERMISSIVE}"
	control.must(os.WriteFile(m.Folder.at("api"), fmt.Appendf(nil, behindSidecar, m.service, m.inbound), 0o600))
	m.Serve(fmt.Sprintf("certFile: %q, keyFile: %q", control.file("tls.crt"), control.file("tls.key")))

	connect := func(account string, flags ...string) *proxy.Proxy {
		token := filepath.Join(m.Dir, account+".token")
		control.must(os.WriteFile(token, ca.run("token", "--namespace", shop, "--account", account), 0o600))
		return m.connectWith(proxy.Config{
			Workload: account, Delta: delta, Listeners: true, Flags: append(flags, "--ca", control.file("ca.crt"), "--token-file", token),
		})
	}
	workload := startBackend(t, "api", "api")
	m.server = connect("api", "--inbound", fmt.Sprintf("127.0.0.1:%d=%d", m.inbound, workload.Port), "--outbound", "1")
	m.client = connect("web")
	return m
}

// call calls the service through the client's Envoy.
func (m *mutual) call(transport *http.Transport) error {
	return answersOver(m.Context(), transport, m.service, "api.example.com", "api")
}

// plaintext calls the server's Envoy as a client outside of the mesh does.
func (m *mutual) plaintext() error {
	return answers(m.Context(), m.inbound, "api.example.com", "api")
}

// handshakes is the number of TLS handshakes of the server with clients.
func (m *mutual) handshakes() (n uint64) {
	m.Helper()
	stats, err := m.server.Stats(m.Context(), `^listener\..*ssl\.handshake$`)
	if err != nil {
		m.Fatal(err)
	}
	for _, of := range stats {
		n += of
	}
	return n
}

// callAlways calls the service until stop is called, which reports the calls that failed.
func (m *mutual) callAlways() (stop func()) {
	var calling sync.WaitGroup
	end := make(chan struct{})
	calling.Go(func() {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		for calls := 0; ; calls++ {
			select {
			case <-end:
				m.Logf("%d calls", calls)
				return
			default:
				if err := m.call(transport); err != nil && m.Context().Err() == nil {
					m.Errorf("call %d: %v", calls, err)
					return
				}
			}
		}
	})
	return func() {
		close(end)
		calling.Wait()
	}
}

// TestSidecarsUseMutualTLS has two Envoys get their certificates from Isthmus on the stream that
// a token has opened. They call each other by mutual TLS, and a client without a certificate is
// served until the mode is STRICT. The change of the mode fails no call between them.
func TestSidecarsUseMutualTLS(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMutual(t, delta)
		await(t, "the service to answer", func() error { return m.call(&http.Transport{DisableKeepAlives: true}) })
		if m.handshakes() == 0 {
			t.Error("the call was plaintext")
		}
		await(t, "a plaintext client to be served", m.plaintext)

		stop := m.callAlways()
		control := m.Isthmuses[0]
		control.Configure("mode: PERMISSIVE", "mode: STRICT")
		control.Kill()
		control.Serve()
		await(t, "a plaintext client to be rejected", func() error {
			if m.plaintext() == nil {
				return errors.New("it is served")
			}
			return nil
		})
		before := m.handshakes()
		await(t, "a new connection to answer", func() error { return m.call(&http.Transport{DisableKeepAlives: true}) })
		stop()
		if n := m.handshakes(); n < before || n == 0 {
			t.Errorf("%d handshakes after %d", n, before)
		}
		if m.plaintext() == nil {
			t.Error("a plaintext client is served in mode STRICT")
		}
	})
}
