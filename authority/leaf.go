package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/secrets"
)

// Issuer makes the certificates that clients are sent. It works on keys in memory.
type Issuer struct {
	authority  *Authority
	prefix     string // of the identities of its trust domain
	generation string
	ttl        time.Duration
	bundle     *secrets.Bundle
}

var _ secrets.Issuer = (*Issuer)(nil)

// Issuer returns the issuer of certificates by the authority, which are valid for ttl.
func (a *Authority) Issuer(ttl time.Duration) *Issuer {
	hash := sha256.Sum256(a.root.Raw)
	return &Issuer{
		authority: a, ttl: ttl, prefix: a.domain.IDString() + "/", generation: hex.EncodeToString(hash[:]),
		bundle: &secrets.Bundle{Authorities: pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: a.root.Raw})},
	}
}

// Issues implements [secrets.Issuer].
func (i *Issuer) Issues(identity string) bool { return strings.HasPrefix(identity, i.prefix) }

// Current implements [secrets.Issuer].
func (i *Issuer) Current(*secrets.Leaf) bool { return true }

// Changed implements [secrets.Issuer].
func (i *Issuer) Changed() <-chan struct{} { return nil }

// Bundle implements [secrets.Issuer].
func (i *Issuer) Bundle() *secrets.Bundle { return i.bundle }

// Issue implements [secrets.Issuer]. The key is new. A leaf is the newest one for half of its
// validity.
func (i *Issuer) Issue(identity string, now time.Time) (*secrets.Leaf, error) {
	w := secrets.WindowOf(identity, i.ttl/2, now)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	chain, err := i.authority.Sign(identity, &key.PublicKey, w.From, w.NotAfter().Sub(w.From))
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &secrets.Leaf{
		Identity: identity, Chain: chain, Key: pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), Generation: i.generation, Window: w,
	}, nil
}
