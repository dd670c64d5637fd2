package envoy_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// roots returns the roots in the folder of the authority, the signing one first.
func (i *issuer) roots() []*x509.Certificate { return i.certificates("root.pem") }

// issuing returns the issuing certificate of workloads.
func (i *issuer) issuing() *x509.Certificate { return i.certificates("issuer.pem")[0] }

// certificates returns the certificates in a file of the authority.
func (i *issuer) certificates(name string) []*x509.Certificate {
	i.t.Helper()
	text, err := os.ReadFile(filepath.Join(i.dir, name))
	if err != nil {
		i.t.Fatal(err)
	}
	list, err := certificatesIn(text)
	if err != nil || len(list) == 0 {
		i.t.Fatalf("%s has %d certificates: %v", name, len(list), err)
	}
	return list
}

// certificatesIn returns the certificates in a text, without the keys between them.
func certificatesIn(text []byte) (list []*x509.Certificate, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return list, nil
		}
		text = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
}

// rotate takes a step, and returns the reason if it may not be taken yet.
func (i *issuer) rotate(step string, flags ...string) error {
	out, err := exec.CommandContext(i.t.Context(), programs.isthmus, append([]string{"ca", "rotate", step, "--dir", i.dir}, flags...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// trusts says whether an Envoy trusts some roots, and no others of all.
func trusts(t *testing.T, p *proxy.Proxy, all, trusted []*x509.Certificate) error {
	t.Helper()
	page, err := p.Certificates(t.Context())
	if err != nil {
		return err
	}
	for _, root := range all {
		wanted := slices.ContainsFunc(trusted, root.Equal)
		if strings.Contains(page, strings.TrimLeft(root.SerialNumber.Text(16), "0")) != wanted {
			return fmt.Errorf("root %s is trusted: %t; Envoy has %s", root.SerialNumber.Text(16), !wanted, page)
		}
	}
	return nil
}

// signedBy says whether both Envoys have accepted certificates of an issuing certificate, and none of another.
func (m *mutual) signedBy(issuing *x509.Certificate) error {
	control := m.Isthmuses[0]
	clients, err := control.clients()
	if err != nil || len(clients) != 2 {
		return fmt.Errorf("%d clients: %w", len(clients), err)
	}
	for _, c := range clients {
		var page struct {
			Resources []struct {
				Name, State string
				Content     struct {
					Certificate struct {
						Chain struct {
							Bytes []byte `json:"inlineBytes"`
						} `json:"certificateChain"`
					} `json:"tlsCertificate"`
				}
			}
		}
		if err := control.ask("/api/v1/clients/"+url.PathEscape(c.ID)+"/resources?content", &page); err != nil {
			return err
		}
		for _, r := range page.Resources {
			chain, err := certificatesIn(r.Content.Certificate.Chain.Bytes)
			if err == nil && len(chain) == 0 {
				continue
			}
			if err == nil {
				err = chain[0].CheckSignatureFrom(issuing)
			}
			if err != nil || r.State != "accepted" {
				return fmt.Errorf("%s of %s is %s: %w", r.Name, c.ID, r.State, err)
			}
		}
	}
	return nil
}

// mustShakeHands calls the service so often at once that the client's Envoy opens another
// connection, and expects that each call succeeds.
func (m *mutual) mustShakeHands(when string) {
	m.Helper()
	for before, n := m.handshakes(), 8; m.handshakes() == before; n *= 2 {
		if n > 1024 {
			m.Fatalf("%s: no connection was opened", when)
		}
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if err := m.call(&http.Transport{DisableKeepAlives: true}); err != nil {
					m.Errorf("%s: %v", when, err)
				}
			})
		}
		all.Wait()
	}
}

// TestRotatedRootFailsNoCall changes the issuing certificate, and rotates the root of the authority, while
// two Envoys call each other with certificates of a minute, and Isthmus is killed after each step. The key
// of the root is elsewhere, but for the rotation. No call fails. At the end both trust the new root alone,
// and certificates are signed by its issuing certificate.
func TestRotatedRootFailsNoCall(t *testing.T) {
	t.Parallel()
	m := newMutual(t, true, time.Minute)
	ca := &issuer{t: t, dir: filepath.Join(m.Dir, "ca")}
	address := []string{"--admin", m.Isthmuses[0].url("")}
	await(t, "the service to answer", func() error { return m.call(&http.Transport{DisableKeepAlives: true}) })
	both := []*proxy.Proxy{m.server, m.client}
	stop := m.callAlways()
	old, first := ca.roots()[0], ca.issuing()
	here, vault := filepath.Join(ca.dir, "root-key.pem"), filepath.Join(m.Dir, "vault.pem")
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(here, vault)
	ca.run("issuer", "--root-key", vault)
	m.mustShakeHands("right after the issuing certificate has changed")
	if ca.issuing().Equal(first) {
		t.Fatal("the issuing certificate is the same")
	}
	await(t, "certificates of the next issuing certificate", func() error { return m.signedBy(ca.issuing()) })
	m.mustShakeHands("with certificates of the next issuing certificate")
	move(vault, here)
	if err := ca.rotate("begin"); err != nil {
		t.Fatal(err)
	}
	restart := func() {
		m.Isthmuses[0].Kill()
		m.Isthmuses[0].Serve()
	}
	restart()
	all := ca.roots()
	for _, p := range both {
		await(t, "both roots to be trusted", func() error { return trusts(t, p, all, all) })
	}
	m.mustShakeHands("while both roots are trusted")
	await(t, "the next root to sign", func() error { return ca.rotate("sign", address...) })
	signing := ca.roots()[0]
	if signing.Equal(old) {
		t.Fatal("the old root signs")
	}
	restart()
	m.mustShakeHands("right after the next root signs")
	if err := ca.rotate("finish", address...); err == nil || !strings.Contains(err.Error(), "valid until") {
		t.Errorf("the old root may leave at once: %v", err)
	}
	if err := ca.issuing().CheckSignatureFrom(signing); err != nil {
		t.Errorf("the new root has not signed the issuing certificate: %v", err)
	}
	await(t, "certificates of the new root", func() error { return m.signedBy(ca.issuing()) })
	m.mustShakeHands("with certificates of the new root")
	await(t, "the old root to leave", func() error { return ca.rotate("finish", address...) })
	restart()
	for _, p := range both {
		await(t, "the new root alone to be trusted", func() error { return trusts(t, p, all, []*x509.Certificate{signing}) })
	}
	m.mustShakeHands("without the old root")
	stop()
	if fresh := ca.roots(); len(fresh) != 1 || !fresh[0].Equal(signing) {
		t.Errorf("%d roots are left", len(fresh))
	}
}
