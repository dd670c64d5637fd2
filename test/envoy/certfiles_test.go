package envoy_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// held is a folder with the certificate of a workload, in the form of spiffe-helper: file by
// file.
type held struct{ *identity }

// overwrite writes the files one after the other, the key last.
func (h held) overwrite(trusted ...*authority.Authority) {
	h.t.Helper()
	var bundle []byte
	for _, a := range trusted {
		bundle = append(bundle, a.PEM...)
	}
	h.must(os.WriteFile(filepath.Join(h.path, "svid.pem"), h.pair.Cert, 0o600))
	h.must(os.WriteFile(filepath.Join(h.path, "svid_bundle.pem"), bundle, 0o600))
	h.must(os.WriteFile(filepath.Join(h.path, "svid_key.pem"), h.pair.Key, 0o600))
}

// TestCertificatesFromFilesFailNoCall has the certificates of two Envoys come from files, one pair
// as Kubernetes swaps it and one as spiffe-helper overwrites it. They are renewed, and then come
// from another authority without notice, while each call is a handshake.
func TestCertificatesFromFilesFailNoCall(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := &mutual{mesh: newMesh(t), service: freePort(t), inbound: freePort(t)}
		older, newer := authority.New(t, "older"), authority.New(t, "newer")
		dir := filepath.Join(m.Dir, "pairs")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		web := newIdentity(t, filepath.Join(m.Dir, "web"), "spiffe://mesh.example/ns/"+shop+"/sa/web")
		api := held{newIdentity(t, filepath.Join(dir, "api"), "spiffe://mesh.example/ns/"+shop+"/sa/api")}
		web.must(os.Symlink(filepath.Join(web.path, "now"), filepath.Join(dir, "web")))
		replace := func(a *authority.Authority) {
			web.issue(a)
			web.replace(a)
			api.issue(a)
			api.overwrite(a)
		}
		replace(older)
		m.start(delta, "TCP", "ttl: 24h", fmt.Sprintf("dir: %q", dir))
		each := &http.Transport{DisableKeepAlives: true}
		await(t, "the service to answer", func() error { return m.call(each) })
		stop := m.callOver(each)
		for _, a := range []*authority.Authority{older, newer, newer} {
			replace(a)
			m.awaitPair(m.client, web)
			m.awaitPair(m.server, api.identity)
			before := m.handshakes()
			await(t, "calls with the new certificates", func() error {
				if n := m.handshakes(); n < before+20 {
					return fmt.Errorf("%d handshakes after %d", n, before)
				}
				return nil
			})
		}
		stop()
		m.mustHideKeys()
	})
}

// awaitPair waits until an Envoy has the certificate that was issued last.
func (m *mutual) awaitPair(p *proxy.Proxy, of *identity) {
	m.Helper()
	await(m, "the certificate of "+of.uri, func() error {
		page, err := p.Certificates(m.Context())
		if err == nil && !strings.Contains(page, of.serial()) {
			err = errors.New("it has another one")
		}
		return err
	})
}
