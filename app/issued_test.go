package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const issuedByAuthority = `
sources: [{name: files, file: {path: registry}}]
identity: {authority: {dir: ca}}
outputs:
  xds: {listen: "127.0.0.1:0", tls: {}}
  mcp: {listen: "127.0.0.1:0", tls: {names: [isthmus.example.com]}}
  watch: {listen: "127.0.0.1:0", tls: {}}
admin: {listen: "127.0.0.1:0"}
`

// TestTheAuthorityIssuesTheCertificatesOfListeners has all outputs with TLS listen without a
// file of a certificate.
func TestTheAuthorityIssuesTheCertificatesOfListeners(t *testing.T) {
	a, ca, _ := startIssuing(t)
	for output, names := range map[string][]string{"xds": {"localhost", "127.0.0.1", "::1"}, "mcp": {"isthmus.example.com"}, "watch": {"localhost"}} {
		for _, name := range names {
			if err := connects(a.Addr(output).String(), name, ca.Root()); err != nil {
				t.Errorf("%s as %s: %v", output, name, err)
			}
		}
	}
	if connects(a.Addr("mcp").String(), "localhost", ca.Root()) == nil {
		t.Error("the certificate is for more than the configured names")
	}
}

// connects makes a handshake with a listener that is verified by a name.
func connects(address, name string, root *x509.Certificate) error {
	roots := x509.NewCertPool()
	roots.AddCert(root)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: name, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer conn.Close()
	if leaf := conn.ConnectionState().PeerCertificates[0]; len(leaf.URIs) > 0 {
		return fmt.Errorf("the certificate has the identity %s", leaf.URIs)
	}
	return nil
}

// TestProblemsOfIdentityAreShown damages the files of an authority while Isthmus runs.
func TestProblemsOfIdentityAreShown(t *testing.T) {
	a, _, dir := startIssuing(t)
	read := func(path string) string {
		response, err := http.Get("http://" + a.AdminAddr().String() + path) //nolint:noctx // it is on loopback
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if text := read("/readyz?verbose"); strings.Contains(text, "identity") {
		t.Errorf("nothing is wrong, and it says %s", text)
	}
	for _, name := range []string{identity.TokenKeysFile, identity.RevokedFile} {
		if err := os.WriteFile(filepath.Join(dir, "ca", name), []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wanted := []string{`error: identity: issuer "spiffe://cluster.local": its keys cannot be read: `, "error: identity: revocations: they cannot be read: ", "; next: "}
	until.NoError(t, 50*time.Millisecond, "the problems to be shown", func() error {
		text := read("/readyz?verbose")
		for _, line := range wanted {
			if !strings.Contains(text, line) {
				return fmt.Errorf("%q is missing in %s", line, text)
			}
		}
		return nil
	})
	if text := read("/api/v1/status"); strings.Count(text, `"about": "identity"`) != 2 || !strings.Contains(text, `"wrong": true`) {
		t.Errorf("the status is %s", text)
	}
}

// startIssuing starts an Isthmus with the configuration of the tests, and returns it with its
// authority and its folder.
func startIssuing(t *testing.T) (*app.App, *authority.Authority, string) {
	t.Helper()
	dir := t.TempDir()
	domain, err := authority.TrustDomain("cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.Create(filepath.Join(dir, "ca"), domain, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(path, []byte(issuedByAuthority), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "registry"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a, ca, dir
}
