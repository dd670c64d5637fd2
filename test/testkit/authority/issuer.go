package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer signs tokens for Isthmus, with a key of its own.
type Issuer struct {
	t    TB
	name string
	key  *ecdsa.PrivateKey
}

// NewIssuer returns an issuer with its name, the claim iss.
func NewIssuer(t TB, name string) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	return &Issuer{t, name, key}
}

// Keys returns its JSON Web Key Set.
func (i *Issuer) Keys() []byte {
	i.t.Helper()
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "k", Key: i.key.Public(), Use: "sig"}}})
	if err != nil {
		i.t.Fatalf("keys: %v", err)
	}
	return keys
}

// Token returns a token of a service account, for an hour.
func (i *Issuer) Token(namespace, account string) string {
	i.t.Helper()
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": i.name, "aud": "isthmus", "sub": "system:serviceaccount:" + namespace + ":" + account,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		i.t.Fatalf("claims: %v", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		i.t.Fatalf("signer: %v", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		i.t.Fatalf("token: %v", err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatalf("token: %v", err)
	}
	return token
}
