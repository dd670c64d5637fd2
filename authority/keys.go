package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"

	"github.com/go-jose/go-jose/v4"
)

const keyBlock = "PRIVATE KEY" // PKCS#8

// publicKeys returns the key set with which tokens are verified.
func publicKeys(key *ecdsa.PrivateKey) ([]byte, error) {
	one := jose.JSONWebKey{Key: key.Public(), Use: "sig", Algorithm: string(jose.ES256)}
	sum, err := one.Thumbprint(crypto.SHA256) // RFC 7638
	if err != nil {
		return nil, err
	}
	one.KeyID = base64.RawURLEncoding.EncodeToString(sum)
	text, err := json.MarshalIndent(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{one}}, "", "  ")
	return append(text, '\n'), err
}

// fits reports whether a private key belongs to a public one.
func fits(key *ecdsa.PrivateKey, other crypto.PublicKey) bool { return key.PublicKey.Equal(other) }

// keyOf returns the key of a certificate among some keys; nil if it is not there.
func keyOf(c *x509.Certificate, keys []*ecdsa.PrivateKey) *ecdsa.PrivateKey {
	for _, key := range keys {
		if fits(key, c.PublicKey) {
			return key
		}
	}
	return nil
}
