package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/app"
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
	ctx, cancel := context.WithCancel(t.Context())
	a, err := app.New(ctx, c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
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
