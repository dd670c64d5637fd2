package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// The validity of certificates.
const (
	rootYears = 10
	backdated = 2 * time.Minute // for clients with slow clocks
)

const certificateBlock = "CERTIFICATE"

// TrustDomain parses the name of a trust domain, such as cluster.local.
func TrustDomain(name string) (spiffeid.TrustDomain, error) {
	domain, err := spiffeid.TrustDomainFromString(name)
	const most = 255 // SPIFFE
	if err != nil || domain.Name() != name || len(name) > most || strings.Trim(name, ".-_") != name {
		return spiffeid.TrustDomain{}, fmt.Errorf("%q is not a trust domain: use a name of lower-case letters, digits, dots and hyphens, such as cluster.local", name)
	}
	return domain, nil
}

// makeRoot returns the root of a trust domain, in PEM form. It follows the rules of SPIFFE
// for signing certificates.
func makeRoot(domain spiffeid.TrustDomain, key *ecdsa.PrivateKey, now time.Time) ([]byte, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{domain.Name()}},
		URIs:                  []*url.URL{domain.ID().URL()},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.AddDate(rootYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), nil
}

func parseRoot(text []byte) (root *x509.Certificate, domain spiffeid.TrustDomain, err error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != certificateBlock {
		return nil, domain, errors.New("it has no certificate in PEM form")
	}
	if root, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, domain, err
	}
	if len(root.URIs) != 1 {
		return nil, domain, fmt.Errorf("it has %d URIs among its names instead of one", len(root.URIs))
	}
	id, err := spiffeid.FromURI(root.URIs[0])
	if err == nil && id.Path() != "" {
		err = fmt.Errorf("%q is the identity of a workload", id)
	}
	if err == nil {
		err = root.CheckSignatureFrom(root)
	}
	return root, id.TrustDomain(), err
}

// Fingerprint returns the SHA-256 hash of a certificate as openssl prints it.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// fits reports whether a private key belongs to a public one.
func fits(key *ecdsa.PrivateKey, other crypto.PublicKey) bool { return key.PublicKey.Equal(other) }
