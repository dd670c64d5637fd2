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

// Sign returns a certificate for the key of a workload, and the issuing certificate if there is one,
// in PEM form. It follows the rules of SPIFFE for the certificates of workloads (X.509-SVID), and never
// outlives the issuing certificate and the root. It checks no revocation: the caller does, before each signature.
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
	chain, err := a.signLeaf(a.workloads, template, key, now)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return text, nil
}

// signLeaf signs a certificate that does not outlive its issuer. It returns the chain up to the root.
func (a *Authority) signLeaf(by signer, template *x509.Certificate, key crypto.PublicKey, now time.Time) (chain [][]byte, err error) {
	if err := a.ended(by, now); err != nil {
		return nil, err
	}
	if template.NotAfter.After(by.cert.NotAfter) {
		template.NotAfter = by.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key, by.key)
	if by.cert == a.root {
		return [][]byte{der}, err
	}
	return [][]byte{der, by.cert.Raw}, err
}

// begun returns an error if a signer is not valid yet, by the clock of now: others reject what it signs.
func (a *Authority) begun(by signer) error {
	if time.Now().Before(by.cert.NotBefore) {
		return fmt.Errorf("the certificate that signs is not valid before %s: correct the clock, here or where it was made, and make the next one with 'isthmus ca issuer --dir %s'", by.cert.NotBefore.UTC().Format(time.RFC3339), a.dir)
	}
	return nil
}

// ended returns an error if a signer has expired.
func (a *Authority) ended(by signer, now time.Time) error {
	switch {
	case now.Before(by.cert.NotAfter):
		return nil
	case by.cert == a.root:
		return expired(a.root)
	default:
		return fmt.Errorf("the issuing certificate expired at %s and signs nothing: make the next one with 'isthmus ca issuer --dir %s'", by.cert.NotAfter.UTC().Format(time.RFC3339), a.dir)
	}
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
