package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/isthmus-mesh/isthmus/identity"
)

// keys are the keys of all tests: making RSA keys is slow.
type keys struct {
	rsa, otherRSA, weakRSA *rsa.PrivateKey
	p256, p384, p521       *ecdsa.PrivateKey
	ed                     ed25519.PrivateKey
}

var testKeys = sync.OnceValue(func() keys {
	curve := func(c elliptic.Curve) *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(c, rand.Reader)) }
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	return keys{
		rsa: must(rsa.GenerateKey(rand.Reader, 2048)), otherRSA: must(rsa.GenerateKey(rand.Reader, 2048)), weakRSA: must(rsa.GenerateKey(rand.Reader, 1024)),
		p256: curve(elliptic.P256()), p384: curve(elliptic.P384()), p521: curve(elliptic.P521()), ed: must(ed, err),
	}
})

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func jwk(id string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: id, Key: key.Public(), Use: "sig"}
}

func keySet(keys ...jose.JSONWebKey) []byte {
	return must(json.Marshal(jose.JSONWebKeySet{Keys: keys}))
}

// token signs claims. More are further headers.
func token(algorithm jose.SignatureAlgorithm, id string, key any, claims map[string]any, more map[jose.HeaderKey]any) string {
	return signed(algorithm, id, key, must(json.Marshal(claims)), more)
}

func signed(algorithm jose.SignatureAlgorithm, id string, key any, payload []byte, more map[jose.HeaderKey]any) string {
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	if id != "" {
		options.ExtraHeaders["kid"] = id
	}
	maps.Copy(options.ExtraHeaders, more)
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options))
	return must(must(signer.Sign(payload)).CompactSerialize())
}

const (
	kubernetes = "https://kubernetes.default.svc.cluster.local"
	cart       = "spiffe://cluster.local/ns/shop/sa/cart"
)

// kubernetesClaims are the claims of a bound token of the account cart.
func kubernetesClaims() map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": kubernetes, "aud": []string{"isthmus"}, "sub": "system:serviceaccount:shop:cart", "jti": "one",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "cart"}},
	}
}

// with returns claims with changes; nil removes one.
func with(claims map[string]any, name string, value any) map[string]any {
	if claims[name] = value; value == nil {
		delete(claims, name)
	}
	return claims
}

func write(t testing.TB, path string, text []byte) string {
	t.Helper()
	temporary := path + ".new"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func verifier(t testing.TB, c identity.Config) *identity.Verifier {
	t.Helper()
	v, err := identity.New(c, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// issuerOf returns the issuer kubernetes with keys in a file.
func issuerOf(t testing.TB, keys ...jose.JSONWebKey) identity.Issuer {
	t.Helper()
	return identity.Issuer{Issuer: kubernetes, KeysFile: write(t, filepath.Join(t.TempDir(), "keys.json"), keySet(keys...))}
}

// bearer is the evidence of a token over TLS.
func bearer(text string) identity.Evidence {
	return identity.Evidence{Authorization: []string{"Bearer " + text}, Secure: true, Peer: netip.MustParseAddr("10.1.2.3")}
}

func certificate(uris ...string) *x509.Certificate {
	cert := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature}
	for _, uri := range uris {
		cert.URIs = append(cert.URIs, must(url.Parse(uri)))
	}
	return cert
}

// chains are the verified chains of a certificate.
func chains(certs ...*x509.Certificate) [][]*x509.Certificate { return [][]*x509.Certificate{certs} }

func testLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
