package envoy_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
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
  ports: [{number: %d, name: calls, protocol: %s}]
  endpoints:
  - {address: 127.0.0.1, ports: {calls: %d}, labels: {security.istio.io/tlsMode: istio}, serviceAccount: api}
`

// mutual is two Envoys with nothing but a bootstrap and a token, and a service behind one of
// them.
type mutual struct {
	*mesh
	service, inbound uint32 // ports
	server, client   *proxy.Proxy
}

// newMutual starts them. Certificates are valid for ttl.
func newMutual(t *testing.T, delta bool, ttl time.Duration) *mutual {
	t.Helper()
	m := &mutual{mesh: newMesh(t), service: freePort(t), inbound: freePort(t)}
	m.start(delta, "HTTP", fmt.Sprintf("ttl: %s", ttl), "")
	return m
}

// start starts them, with keys of identity.authority and of identity.files.
func (m *mutual) start(delta bool, protocol, authorityKeys, filesKeys string) {
	m.Helper()
	t := m.T
	ca, trusted := newIssuer(t, m.Dir), authority.New(t, "authority")
	control := newIdentity(t, filepath.Join(m.Dir, "control"), isthmusIdentity)
	control.issue(trusted)
	control.replace(trusted)
	m.Identity = fmt.Sprintf("trustDomain: mesh.example, authority: {dir: %q, %s}, files: {%s}", ca.dir, authorityKeys, filesKeys)
	m.Envoy = "trustDomain: mesh.example, mtls: {mode: PERMISSIVE}"
	control.must(os.WriteFile(m.Folder.at("api"), fmt.Appendf(nil, behindSidecar, m.service, protocol, m.inbound), 0o600))
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
func (m *mutual) callAlways() (stop func()) { return m.callOver(&http.Transport{}) }

// callOver is callAlways over a transport.
func (m *mutual) callOver(transport *http.Transport) (stop func()) {
	var calling sync.WaitGroup
	end := make(chan struct{})
	calling.Go(func() {
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
		m := newMutual(t, delta, 24*time.Hour)
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
		m.mustHideKeys()
	})
}

// mustHideKeys expects no private key in anything that Isthmus says or keeps, but for the
// folder of its authority.
func (m *mutual) mustHideKeys() {
	m.Helper()
	control := m.Isthmuses[0]
	said := map[string][]byte{}
	files, err := filepath.Glob(filepath.Join(m.Dir, "isthmus*"))
	if err != nil || len(files) == 0 {
		m.Fatalf("%q: %v", files, err)
	}
	for _, root := range files {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				said[path], err = os.ReadFile(path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a file on its way to another name
			}
			return err
		})
		if err != nil {
			m.Fatal(err)
		}
	}
	await(m, "both Envoys to have certificates", func() error { // after a restart each connects when it next tries
		clients, err := control.clients()
		if err != nil || len(clients) != 2 {
			return errors.Join(err, fmt.Errorf("%d clients", len(clients)))
		}
		for _, c := range clients {
			path := "/api/v1/clients/" + url.PathEscape(c.ID) + "/resources?content"
			if said[path] = probe.Get(control.url(path)); !bytes.Contains(said[path], []byte(`"default"`)) {
				return fmt.Errorf("%s has no certificate: %s", path, said[path])
			}
		}
		return nil
	})
	for from, text := range said {
		for _, form := range []string{"PRIVATE KEY", base64.StdEncoding.EncodeToString([]byte("-----BEGIN PRIVATE KEY-----"))[:36]} {
			if bytes.Contains(text, []byte(form)) {
				m.Errorf("%s has a private key", from)
			}
		}
	}
}

// TestRenewedCertificatesFailNoCall has certificates of two minutes, so that each Envoy is sent
// another one every minute while it is called.
func TestRenewedCertificatesFailNoCall(t *testing.T) {
	t.Parallel()
	m := newMutual(t, true, 2*time.Minute)
	await(t, "the service to answer", func() error { return m.call(&http.Transport{DisableKeepAlives: true}) })
	stop := m.callAlways()
	for _, p := range []*proxy.Proxy{m.server, m.client} {
		first, err := p.Certificates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		await(t, "another certificate", func() error {
			now, err := p.Certificates(t.Context())
			if err == nil && now == first {
				err = errors.New("it is the same")
			}
			return err
		})
	}
	before := m.handshakes()
	await(t, "a handshake with it", func() error {
		err := m.call(&http.Transport{DisableKeepAlives: true})
		if err == nil && m.handshakes() == before {
			err = errors.New("a connection is used that is open")
		}
		return err
	})
	stop()
}
