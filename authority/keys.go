package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/isthmus-mesh/isthmus/identity"
)

const keyBlock = "PRIVATE KEY" // PKCS#8

// ensureKey returns the key of a file, which it makes unless an interrupted command has
// made it before. The caller has the lock of the folder.
func (d folder) ensureKey(name string) (*ecdsa.PrivateKey, error) {
	if d.has(name) {
		return d.readKey(name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, d.replace(name, private, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}))
}

// readKey reads a private key. Its errors contain nothing of the file.
func (d folder) readKey(name string) (*ecdsa.PrivateKey, error) {
	text, err := d.read(name)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil && block.Type == keyBlock {
		parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(*ecdsa.PrivateKey); ok && key.Curve == elliptic.P256() {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s is not a private key for ECDSA P-256 in PEM form (PKCS#8): restore it from your backup", d.path(name))
}

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

// readTokenKey reads the public key of tokens.
func (d folder) readTokenKey() (key jose.JSONWebKey, err error) {
	text, err := d.read(identity.TokenKeysFile)
	if err != nil {
		return key, err
	}
	var set jose.JSONWebKeySet
	if json.Unmarshal(text, &set) == nil && len(set.Keys) == 1 && set.Keys[0].IsPublic() && set.Keys[0].KeyID != "" {
		return set.Keys[0], nil
	}
	return key, fmt.Errorf("%s is not a set of one public key: restore it from your backup", d.path(identity.TokenKeysFile))
}
