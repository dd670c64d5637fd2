package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/isthmus-mesh/isthmus/internal/bounded"
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

// parseKey parses a private key. Its error contains nothing of the key.
func parseKey(der []byte) (*ecdsa.PrivateKey, error) {
	parsed, _ := x509.ParsePKCS8PrivateKey(der)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errDamaged
	}
	return key, nil
}

// readKeys reads the private keys of a file. Its errors contain nothing of the file.
func readKeys(path string) ([]*ecdsa.PrivateKey, error) {
	text, err := bounded.File(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, plainCause(err))
	}
	return parseKeys(path, text)
}

// parseKeys parses the private keys of a file.
func parseKeys(path string, text []byte) (keys []*ecdsa.PrivateKey, err error) {
	blocks, err := blocksOf(text, keyBlock)
	for _, block := range blocks {
		key, bad := parseKey(block)
		if err = bad; err != nil {
			break
		}
		keys = append(keys, key)
	}
	if err != nil || len(keys) == 0 {
		return nil, fmt.Errorf("%s is not a private key for ECDSA P-256 in PEM form (PKCS#8): restore it from your backup", path)
	}
	return keys, nil
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
