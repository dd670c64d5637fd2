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
		_, there, err := d.readRoots()
		if err != nil {
			return err
		}
		return fmt.Errorf("%s has an authority already, of trust domain %s, and it is unchanged: see 'isthmus ca show --dir %[1]s', or name another folder", d, there.Name())
	}
	for _, name := range files() {
		if _, err := d.keeps(name); err != nil {
			return err
		}
	}
	if err := d.lacksRoot(); err != nil {
		return err
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
	if !d.has(identity.RevokedFile) {
		if err := d.writeRevocations(identity.Revocations{}, tokenList{}, now); err != nil {
			return err
		}
	}
	root, err := makeRoot(domain, rootKey, now)
	if err != nil {
		return err
	}
	if err := d.writeIssuing(signer{root, rootKey}, now, LongestIssuing); err != nil {
		return err
	}
	return d.writeRoots(root)
}

// readRoots reads the roots and their trust domain. The first one signs.
func (d folder) readRoots() ([]*x509.Certificate, spiffeid.TrustDomain, error) {
	text, err := d.read(RootFile)
	if err != nil {
		return nil, spiffeid.TrustDomain{}, err
	}
	roots, domain, err := parseRoots(text)
	if err != nil {
		return nil, domain, fmt.Errorf("%s is not the root of a trust domain: %w; restore it from your backup", d.path(RootFile), err)
	}
	return roots, domain, nil
}

// ensureKey returns the key of a file, which it makes unless an interrupted command has
// made it before. The caller has the lock of the folder.
func (d folder) ensureKey(name string) (*ecdsa.PrivateKey, error) {
	if made, err := d.keeps(name); err != nil {
		return nil, err
	} else if made {
		return d.readKey(name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, d.writeKeys(name, key)
}

// writeKeys writes private keys to a file. The caller has the lock of the folder.
func (d folder) writeKeys(name string, keys ...*ecdsa.PrivateKey) error {
	var text []byte
	for _, key := range keys {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})...)
	}
	return d.replace(name, private, text)
}

// writeRoots writes the roots; the first one signs from then on. The caller has the lock of
// the folder.
func (d folder) writeRoots(roots ...*x509.Certificate) error {
	return d.replace(RootFile, public, encodeCertificates(roots))
}

// readKey reads the first private key of a file.
func (d folder) readKey(name string) (*ecdsa.PrivateKey, error) {
	keys, err := d.readKeys(name)
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}

// readRootKeys reads the keys of the roots.
func (d folder) readRootKeys() ([]*ecdsa.PrivateKey, error) { return d.readKeys(RootKeyFile) }

// readKeys reads the private keys of a file. Its errors contain nothing of the file.
func (d folder) readKeys(name string) ([]*ecdsa.PrivateKey, error) {
	text, err := d.read(name)
	if err != nil {
		return nil, err
	}
	return parseKeys(d.path(name), text)
}

// readCross reads the certificate of the signing root's key by the root before it, in PEM form; nil
// if there is none. It is there while both roots are trusted, and stays until the next rotation.
func (d folder) readCross(roots []*x509.Certificate, signing *x509.Certificate) ([]byte, error) {
	text, err := bounded.File(d.path(CrossFile))
	if errors.Is(err, fs.ErrNotExist) && !moved(roots) {
		return nil, nil
	}
	var cross *x509.Certificate
	if err == nil {
		cross, err = parseCross(text)
	}
	if err == nil && moved(roots) {
		err = checkCross(cross, roots[0], roots[1])
	}
	if err != nil {
		next := "make it anew with 'isthmus ca rotate sign'"
		if !moved(roots) {
			next = "remove it, and give the root to clients that have the one before"
		}
		return nil, fmt.Errorf("%s cannot be used: %w; restore it from your backup, or %s", d.path(CrossFile), plainCause(err), next)
	}
	if !sameKey(cross, signing) { // of a rotation that was interrupted before the new root signs
		return nil, nil
	}
	return encodeCertificates([]*x509.Certificate{cross}), nil
}

// readRotation reads the record of the rotation; nil if there is none.
func (d folder) readRotation() (*rotationRecord, error) {
	text, err := bounded.File(d.path(RotationFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r *rotationRecord
	if err == nil {
		r, err = parseRotation(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; restore it from your backup, or delete it and repeat 'isthmus ca rotate sign': the wait for the old root's certificates then begins anew",
			d.path(RotationFile), plainCause(err))
	}
	return r, nil
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

// writeRevocations writes the revocations, sorted, and leaves out tokens that have surely
// expired: by the file of tokens, or because no token lives as long since its revocation.
func (d folder) writeRevocations(r identity.Revocations, list tokenList, now time.Time) error {
	kept := identity.Revocations{Accounts: append([]identity.Revocation{}, r.Accounts...), Tokens: []identity.Revocation{}}
	for _, one := range r.Tokens {
		t := list.find(one.ID)
		if t == nil {
			t = &Token{Expires: one.Since.Add(longestTTL)}
		}
		if !t.over(now) || one.Since.IsZero() { // a person may leave the time out
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
