package envoy_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// Who is who.
const (
	proxyIdentity   = "spiffe://mesh.example/ns/" + shop + "/sa/web"
	isthmusIdentity = "spiffe://mesh.example/ns/isthmus-system/sa/isthmus"
)

// identity is a folder with a certificate and authorities that are replaced by
// moving a link, as those of a mounted Secret are.
type identity struct {
	t    testing.TB
	path string
	uri  string
	pair authority.Pair

	generation int
}

func newIdentity(t testing.TB, path, uri string) *identity {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return &identity{t: t, path: path, uri: uri}
}

// replace makes the folder hold what was issued last, and authorities to trust.
func (i *identity) replace(trusted ...*authority.Authority) {
	i.t.Helper()
	i.generation++
	version := fmt.Sprint("v", i.generation)
	var bundle []byte
	for _, a := range trusted {
		bundle = append(bundle, a.PEM...)
	}
	i.must(os.Mkdir(filepath.Join(i.path, version), 0o755))
	for name, content := range map[string][]byte{"tls.crt": i.pair.Cert, "tls.key": i.pair.Key, "ca.crt": bundle} {
		i.must(os.WriteFile(filepath.Join(i.path, version, name), content, 0o600))
	}
	i.must(os.Symlink(version, filepath.Join(i.path, ".next")))
	i.must(os.Rename(filepath.Join(i.path, ".next"), filepath.Join(i.path, "now")))
}

// issue makes the next certificate one of an authority.
func (i *identity) issue(a *authority.Authority) { i.pair = a.Issue(i.uri, i.uri) }

func (i *identity) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

func (i *identity) file(name string) string { return filepath.Join(i.path, "now", name) }

// serial is that of the certificate, as Envoy writes it.
func (i *identity) serial() string {
	i.t.Helper()
	block, _ := pem.Decode(i.pair.Cert)
	certificate, err := x509.ParseCertificate(block.Bytes)
	i.must(err)
	return certificate.SerialNumber.Text(16)
}

// writeSecrets writes the files by which Envoy finds the others. They never
// change: Envoy watches the folder.
func (i *identity) writeSecrets(peer string) {
	i.t.Helper()
	file := func(name string) any { return map[string]string{"filename": i.file(name)} }
	watched := map[string]string{"path": i.path}
	i.writeSecret("certificate", "tls_certificate", map[string]any{
		"certificate_chain": file("tls.crt"), "private_key": file("tls.key"), "watched_directory": watched,
	})
	i.writeSecret("authorities", "validation_context", map[string]any{
		"trusted_ca": file("ca.crt"), "watched_directory": watched,
		"match_typed_subject_alt_names": []any{map[string]any{"san_type": "URI", "matcher": map[string]string{"exact": peer}}},
	})
}

func (i *identity) writeSecret(name, kind string, secret any) {
	i.t.Helper()
	content, err := json.Marshal(map[string]any{"resources": []any{map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": name, kind: secret,
	}}})
	i.must(err)
	i.must(os.WriteFile(filepath.Join(i.path, name+".json"), content, 0o600))
}

// TestRotationFailsNoRequest replaces the certificates of both sides, and their
// authority, while they are connected: first both authorities are trusted, then
// the new one signs, then the old one is not trusted any more.
func TestRotationFailsNoRequest(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		older, newer := authority.New(t, "older"), authority.New(t, "newer")
		control := newIdentity(t, filepath.Join(m.Dir, "control"), isthmusIdentity)
		web := newIdentity(t, filepath.Join(m.Dir, "web"), proxyIdentity)
		both := []*identity{control, web}
		for _, side := range both {
			side.issue(older)
			side.replace(older)
		}
		web.writeSecrets(isthmusIdentity)
		m.Secrets = web.path
		s := openStore(t, m, delta, 1, fmt.Sprintf("certFile: %q, keyFile: %q, clientCAFile: %q",
			control.file("tls.crt"), control.file("tls.key"), control.file("ca.crt")))
		s.mustBeProven()

		for _, side := range both {
			side.replace(older, newer)
		}
		s.awaitAuthorities(older, newer)
		s.members[0].grow()
		s.AwaitActive("a change while both authorities are trusted")

		for _, side := range both {
			side.issue(newer)
			side.replace(older, newer)
		}
		s.awaitCertificate(web)
		s.members[1].grow()
		s.AwaitActive("a change after the certificates were replaced")
		if n := s.withdrawn(); n > 0 {
			t.Errorf("%.0f streams were ended although their authority is trusted", n)
		}

		for _, side := range both {
			side.replace(newer)
		}
		await(t, "the stream of the older certificate to end", func() error {
			if s.withdrawn() == 0 {
				return errors.New("it goes on")
			}
			return nil
		})
		s.members[2].grow()
		s.AwaitActive("a change without the older authority")
		s.mustBeProven()

		s.Isthmuses[0].Kill()
		s.Isthmuses[0].Serve()
		s.members[3].grow()
		s.AwaitActive("a change after a restart")
		s.mustBeProven()
		s.load.MustNotHaveFailed()
		s.mustHaveShakenHands()
	})
}

// mustBeProven is that Isthmus knows Envoy by its certificate.
func (s *store) mustBeProven() {
	s.Helper()
	s.AwaitConnection()
	clients, err := s.Isthmuses[0].clients()
	if err != nil || len(clients) != 1 || !clients[0].Proven || clients[0].Identity != proxyIdentity {
		s.Errorf("the clients are %+v: %v", clients, err)
	}
}

// withdrawn is how many streams were ended because of their certificates.
func (s *store) withdrawn() float64 {
	return s.Isthmuses[0].Metric("isthmus_streams_rejected_total", `cause="certificate"`)
}

// awaitCertificate waits until Envoy has taken the certificate.
func (s *store) awaitCertificate(of *identity) {
	s.Helper()
	s.awaitCertificates("the certificate", of.serial())
}

func (s *store) awaitAuthorities(all ...*authority.Authority) {
	s.Helper()
	serials := []string{}
	for _, a := range all {
		block, _ := pem.Decode(a.PEM)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			s.Fatal(err)
		}
		serials = append(serials, certificate.SerialNumber.Text(16))
	}
	s.awaitCertificates("the authorities", serials...)
}

func (s *store) awaitCertificates(what string, serials ...string) {
	s.Helper()
	await(s, what+" in Envoy", func() error {
		page, err := s.proxy.Certificates(s.Context())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(serials, func(serial string) bool { return !strings.Contains(page, serial) }) {
			return fmt.Errorf("it has not %v: %s", serials, page)
		}
		return nil
	})
}

// mustHaveShakenHands is that neither side has ever rejected the other.
func (s *store) mustHaveShakenHands() {
	s.Helper()
	stats, err := s.proxy.Stats(s.Context(), `^cluster.xds.ssl.`)
	if err != nil || stats["cluster.xds.ssl.handshake"] < 3 {
		s.Errorf("Envoy has shaken hands %d times: %v", stats["cluster.xds.ssl.handshake"], err)
	}
	for name, n := range stats {
		if n > 0 && (strings.Contains(name, "fail") || strings.HasSuffix(name, "connection_error")) {
			s.Errorf("%s is %d", name, n)
		}
	}
	figures.add(s, "%d handshakes, none failed", stats["cluster.xds.ssl.handshake"])
}
