package hostile

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/authority"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

const (
	meshIssuer    = "spiffe://cluster.local"
	hangingIssuer = "https://hangs.example"
	welcomed      = meshIssuer + "/ns/shop/sa/good"
)

// border is a listener that demands a proof, and the keys of its authorities.
type border struct {
	t       *testing.T
	ca      *testca.Authority
	bare    *tls.Config // of a client without a certificate
	own     *authority.Authority
	signer  *ecdsa.PrivateKey // of the tokens of own
	expired string            // a token of own
	revoked string            // another
	partner *testca.Issuer    // of another trust domain; nil without one
}

// withBorder has a listener that takes certificates and tokens of an authority. Another issuer
// has keys at an endpoint that hangs.
func withBorder(t *testing.T) setup {
	t.Helper()
	b, dir := &border{t: t, ca: testca.New(t, "hostile")}, t.TempDir()
	b.bare = b.ca.Client()
	folder, domain := filepath.Join(dir, "authority"), spiffeid.RequireTrustDomainFromString("cluster.local")
	var err error
	if b.own, err = authority.Create(folder, domain, time.Now()); err != nil {
		t.Fatal(err)
	}
	b.readSigner(filepath.Join(folder, authority.TokenKeyFile))
	b.expired = b.issue(time.Now().Add(-2 * time.Hour))
	b.revoked = b.issue(time.Now())
	listed, err := b.own.Tokens(time.Now())
	if err != nil || len(listed) != 1 {
		t.Fatalf("%d tokens: %v", len(listed), err)
	}
	if _, err := b.own.RevokeToken(listed[0].ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)
	pair, files := b.ca.Issue("127.0.0.1"), map[string]string{}
	for name, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key, "ca.crt": b.ca.PEM} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return setup{
		border: b, tls: b.ca.Client(b.ca.Issue("good", welcomed)),
		files:    fmt.Sprintf(", tls: {certFile: %q, keyFile: %q, clientCAFile: %q, trustDomains: [cluster.local]}", files["tls.crt"], files["tls.key"], files["ca.crt"]),
		identity: fmt.Sprintf("identity: {authority: {dir: %q}, jwt: [{issuer: %q, keysURL: %q}]}", folder, hangingIssuer, hangs.URL),
	}
}

func (b *border) readSigner(path string) {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		b.t.Fatal(err)
	}
	b.signer = key.(*ecdsa.PrivateKey)
}

// issue issues a token that is valid for an hour from a time on.
func (b *border) issue(from time.Time) string {
	b.t.Helper()
	text, _, err := b.own.Issue(authority.Grant{Namespace: "shop", Account: "good", TTL: time.Hour}, from)
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// sign signs claims of an issuer for an audience.
func (b *border) sign(algorithm jose.SignatureAlgorithm, key any, issuer, audience string) string {
	b.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"kid": b.own.KeyID()}})
	if err != nil {
		b.t.Fatal(err)
	}
	signed, err := signer.Sign(claims(issuer, audience))
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

func claims(issuer, audience string) []byte {
	return fmt.Appendf(nil, `{"iss": %q, "aud": %q, "sub": %q, "jti": "forged", "exp": %d}`, issuer, audience, welcomed, time.Now().Add(time.Hour).Unix())
}

// unsigned is a token of the algorithm none.
func (b *border) unsigned() string {
	header := fmt.Sprintf(`{"alg":"none","kid":%q}`, b.own.KeyID())
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(claims(meshIssuer, "isthmus")) + "."
}
