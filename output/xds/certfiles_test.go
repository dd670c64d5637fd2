package xds_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/secrets/files"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// A client that asks before its files are there is sent the certificate and the authorities when
// they come, and the certificate again when it is replaced.
func TestCertificateOfFilesIsSent(t *testing.T) {
	t.Parallel()
	dir, ca := t.TempDir(), testca.New(t, "ca")
	issuer, err := files.Open(dir, "cluster.local", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- issuer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	s := openSiteWith(t, output.Env{Certificates: issuer}, true, nil)
	s.put(upserts(service("shop", probe))...)
	c := s.proven(inShop)
	c.Subscribe(sds, "default", "ROOTCA")
	c.Subscribe(cds)
	c.AwaitHeld(cds, clustersOf(probe)...)
	c.AwaitHeld(sds) // no empty list of authorities, which would trust any
	for range 3 {
		pair := ca.Issue("cart", inShop)
		for name, text := range map[string][]byte{"svid.pem": pair.Cert, "svid_key.pem": pair.Key, "svid_bundle.pem": ca.PEM} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.AwaitHeld(sds, "default", "ROOTCA")
		want, _ := pem.Decode(pair.Cert)
		c.Await("the certificate in the files", func(state *xdsclient.State) bool {
			held, _ := state.Get(sds, "default")
			return bytes.Equal(leafIn(t, held.Content).Raw, want.Bytes)
		})
	}
	c.Read(func(state *xdsclient.State) {
		if n := state.Received(sds, "ROOTCA"); n != 1 {
			t.Errorf("the authorities came %d times", n)
		}
		if n := state.Received(sds, "default"); n != 3 {
			t.Errorf("the certificates came %d times", n)
		}
	})
}
