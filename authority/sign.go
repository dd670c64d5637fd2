package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// longestLeaf bounds the validity of a certificate.
const longestLeaf = 90 * 24 * time.Hour

// Sign returns a certificate for the key of a workload, in PEM form. It follows the rules of
// SPIFFE for the certificates of workloads (X.509-SVID), and never outlives the root. It
// checks no revocation: the caller does, before each signature.
func (a *Authority) Sign(id string, key crypto.PublicKey, now time.Time, ttl time.Duration) ([]byte, error) {
	uri, err := a.subject(id)
	if err != nil {
		return nil, err
	}
	if own, ok := key.(*ecdsa.PublicKey); !ok || own.Curve != elliptic.P256() && own.Curve != elliptic.P384() {
		return nil, errors.New("the key is not for ECDSA P-256 or P-384: make another")
	}
	if ttl < shortestTTL || ttl > longestLeaf {
		return nil, fmt.Errorf("certificates live from %s to %s, not %s", shortestTTL, longestLeaf, ttl)
	}
	template := &x509.Certificate{ // without a subject, so that the URI is critical
		URIs:                  []*url.URL{uri},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(ttl),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := a.signLeaf(template, key, now)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), nil
}

// signLeaf signs a certificate that does not outlive the root.
func (a *Authority) signLeaf(template *x509.Certificate, key crypto.PublicKey, now time.Time) (der []byte, err error) {
	if !now.Before(a.root.NotAfter) {
		return nil, expired(a.root)
	}
	if template.NotAfter.After(a.root.NotAfter) {
		template.NotAfter = a.root.NotAfter
	}
	return x509.CreateCertificate(rand.Reader, template, a.root, key, a.rootSigner)
}

// Cross returns the certificate of the root's key by the root before it, in PEM form; nil if there
// is none. Appended to a chain, it lets clients that trust only the root before verify the chain.
func (a *Authority) Cross() []byte { return a.cross }

// subject returns the URI of a workload of the trust domain.
func (a *Authority) subject(text string) (*url.URL, error) {
	id, err := spiffeid.FromString(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not an identity: %w", text, err)
	}
	if !id.MemberOf(a.domain) || id.Path() == "" {
		return nil, fmt.Errorf("%q is not a workload of trust domain %s, and gets no certificate", text, a.domain.Name())
	}
	return id.URL(), nil
}
