package kubernetes_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/authority"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// servedAccount is the identity of an account of the API server.
const servedAccount = "spiffe://cluster.local/ns/default/sa/served"

// hostsOfNamespaces are a host for namespace default alone, and one for another.
const hostsOfNamespaces = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: %[1]s}
spec:
  hosts: [%[1]s.example.com]
  exportTo: [.]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.1}]
---
`

// A token of an API server opens a stream at an Isthmus that reads the keys there. The stream is
// in the namespace of the account, and gets its certificate. A token for the API server itself
// opens none. The token of a deleted account is good until it expires, unless the account is
// revoked.
func TestTokenOfTheAPIServerOpensAStream(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	b := newBearers(t)
	b.create("served")
	token := b.issue("served", "isthmus")
	b.serve(issuerOf(t, token))
	first := b.connect(token)
	b.mustBeServed(first)
	rejected := b.connect(b.issue("served"))
	rejected.Subscribe(xdsclient.CDS)
	if err := rejected.AwaitEnd(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "audience") {
		t.Errorf("a token for the API server: got %v", err)
	}

	b.remove("served")
	second := b.connect(token)
	b.mustBeServed(second)
	if _, err := b.own.RevokeAccount(spiffeid.RequireFromString(servedAccount), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*xdsclient.Client{first, second} {
		if err := c.AwaitEnd(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("an account that was revoked: got %v", err)
		}
	}
}

// bearers are clients with tokens of an API server, and the Isthmus that they connect to.
type bearers struct {
	accounts
	ca      *testca.Authority // of the listener
	own     *authority.Authority
	dir     string // of own
	isthmus *isthmus
}

func newBearers(t *testing.T) *bearers {
	t.Helper()
	b := &bearers{accounts: accountsOf(t, shared), ca: testca.New(t, "listener"), dir: filepath.Join(t.TempDir(), "authority")}
	var err error
	b.own, err = authority.Create(b.dir, spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serve starts an Isthmus that takes the tokens of the API server, by keys at its URL.
func (b *bearers) serve(issuer string) {
	b.t.Helper()
	dir, pair := b.t.TempDir(), b.ca.Issue("127.0.0.1")
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string][]byte{
		"tls.crt": pair.Cert, "tls.key": pair.Key, "token": []byte(b.config.BearerToken),
		"hosts.yaml": fmt.Appendf(nil, hostsOfNamespaces+hostsOfNamespaces, "default", "other"),
	} {
		if err := os.WriteFile(path(name), text, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.isthmus = serveIsthmus(b.t, dir, fmt.Sprintf(`
sources: [{name: folder, file: {path: %q}}]
identity:
  authority: {dir: %q}
  jwt: [{issuer: %q, keysURL: %q, caFile: %q, tokenFile: %q}]
outputs: {xds: {listen: "127.0.0.1:0", tls: {certFile: %q, keyFile: %q}}}
admin: {listen: "127.0.0.1:0"}`,
		path("hosts.yaml"), b.dir, issuer, b.config.Host+"/openid/v1/jwks", b.config.CAFile, path("token"), path("tls.crt"), path("tls.key")))
}

// connect connects an Envoy that has a token and names no namespace.
func (b *bearers) connect(token string) *xdsclient.Client {
	b.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+b.isthmus.xds, grpc.WithTransportCredentials(credentials.NewTLS(b.ca.Client())), grpc.WithPerRPCCredentials(bearerToken(token)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	return xdsclient.NewDelta(b.t, conn, xdsclient.Config{Node: xdsclient.Node("web-1", "", "envoy"), Ledger: &xdsclient.Ledger{}})
}

// mustBeServed expects a client to get the hosts of its namespace, and its own certificate.
func (b *bearers) mustBeServed(c *xdsclient.Client) {
	b.t.Helper()
	c.Subscribe(xdsclient.CDS)
	c.Subscribe(xdsclient.SDS, "default", "ROOTCA")
	c.AwaitHeld(xdsclient.CDS, "outbound|80||default.example.com")
	c.AwaitHeld(xdsclient.SDS, "default", "ROOTCA")
	c.Read(func(s *xdsclient.State) {
		held, _ := s.Get(xdsclient.SDS, "default")
		secret, _ := held.Content.(*tlsv3.Secret)
		block, rest := pem.Decode(secret.GetTlsCertificate().GetCertificateChain().GetInlineBytes())
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil || len(leaf.URIs) != 1 || leaf.URIs[0].String() != servedAccount {
			b.t.Errorf("the certificate is of %v: %v", leaf.URIs, err)
		}
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AddCert(b.own.Root())
		between.AppendCertsFromPEM(rest)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
			b.t.Errorf("the certificate is not of the authority: %v", err)
		}
	})
}

// bearerToken sends a token with each stream.
type bearerToken string

func (b bearerToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearerToken) RequireTransportSecurity() bool { return true }
