package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/bounded"
)

// create writes the files that are missing.
func (d folder) create(domain spiffeid.TrustDomain, now time.Time) error {
	if d.has(RootFile) {
		_, there, err := d.readRoot()
		if err != nil {
			return err
		}
		return fmt.Errorf("%s has an authority already, of trust domain %s, and it is unchanged: see 'isthmus ca show --dir %[1]s', or name another folder", d, there.Name())
	}
	rootKey, err := d.ensureKey(RootKeyFile)
	if err != nil {
		return err
	}
	tokenKey, err := d.ensureKey(TokenKeyFile)
	if err != nil {
		return err
	}
	if !d.has(identity.TokenKeysFile) {
		text, err := publicKeys(tokenKey)
		if err != nil {
			return err
		}
		if err := d.replace(identity.TokenKeysFile, public, text); err != nil {
			return err
		}
	}
	text, err := makeRoot(domain, rootKey, now)
	if err != nil {
		return err
	}
	return d.replace(RootFile, public, text)
}

// readRoot reads the root and its trust domain.
func (d folder) readRoot() (*x509.Certificate, spiffeid.TrustDomain, error) {
	text, err := d.read(RootFile)
	if err != nil {
		return nil, spiffeid.TrustDomain{}, err
	}
	root, domain, err := parseRoot(text)
	if err != nil {
		return nil, domain, fmt.Errorf("%s is not the root of a trust domain: %w; restore it from your backup", d.path(RootFile), err)
	}
	return root, domain, nil
}

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

// readTokens reads the file of tokens. A missing file means none.
func (d folder) readTokens() (list tokenList, err error) {
	text, err := bounded.File(d.path(TokensFile))
	if errors.Is(err, fs.ErrNotExist) {
		return tokenList{}, nil
	}
	if err == nil {
		list, err = parseTokens(text)
	}
	if err != nil {
		return tokenList{}, fmt.Errorf("%s cannot be read: %w; restore it from your backup; without it, revoke accounts instead of tokens", d.path(TokensFile), plainCause(err))
	}
	return list, nil
}

// writeRevocations writes the revocations, sorted, without those of tokens that are surely
// expired: by the file of tokens, or because no token lives as long.
func (d folder) writeRevocations(r identity.Revocations, list tokenList, now time.Time) error {
	kept := identity.Revocations{Accounts: append([]identity.Revocation{}, r.Accounts...), Tokens: []identity.Revocation{}}
	for _, one := range r.Tokens {
		t := list.find(one.ID)
		if t == nil {
			t = &Token{Expires: one.Since.Add(longestTTL)}
		}
		if !t.over(now) {
			kept.Tokens = append(kept.Tokens, one)
		}
	}
	byID := func(a, b identity.Revocation) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(kept.Accounts, byID)
	slices.SortFunc(kept.Tokens, byID)
	text, err := encoded(kept)
	if err != nil {
		return err
	}
	return d.replace(identity.RevokedFile, private, text)
}
