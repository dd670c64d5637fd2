package authority

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/netip"
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
	const most = 255                      // SPIFFE
	_, noAddress := netip.ParseAddr(name) // chains with name constraints take no identity with an address
	if err != nil || domain.Name() != name || len(name) > most || strings.Trim(name, ".-_") != name || noAddress == nil {
		return spiffeid.TrustDomain{}, fmt.Errorf("%q is not a trust domain: use a name of lower-case letters, digits, dots and hyphens, such as cluster.local", name)
	}
	return domain, nil
}

// makeRoot returns a root of a trust domain. It follows the rules of SPIFFE for signing
// certificates.
func makeRoot(domain spiffeid.TrustDomain, key *ecdsa.PrivateKey, now time.Time) (*x509.Certificate, error) {
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
	return x509.ParseCertificate(der)
}

// parseRoots parses the file of roots, which has one of them or, during a rotation, two.
func parseRoots(text []byte) (roots []*x509.Certificate, domain spiffeid.TrustDomain, err error) {
	blocks, err := blocksOf(text, certificateBlock)
	switch {
	case err != nil:
		return nil, domain, err
	case len(blocks) == 0:
		return nil, domain, errors.New("it has no certificate in PEM form")
	case len(blocks) > 2:
		return nil, domain, fmt.Errorf("it has %d certificates, and an authority has at most two", len(blocks))
	}
	for i, block := range blocks {
		root, of, err := parseRoot(block)
		switch {
		case err != nil:
			return nil, domain, err
		case i > 0 && of != domain:
			return nil, domain, fmt.Errorf("it has roots of two trust domains, %s and %s", domain.Name(), of.Name())
		}
		roots, domain = append(roots, root), of
	}
	if len(roots) == 2 && (sameKey(roots[0], roots[1]) || roots[0].NotBefore.Equal(roots[1].NotBefore)) {
		return nil, domain, errors.New("it has two roots of one key or one time")
	}
	return roots, domain, nil
}

func parseRoot(der []byte) (root *x509.Certificate, domain spiffeid.TrustDomain, err error) {
	if root, err = x509.ParseCertificate(der); err != nil {
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

// domainOf returns the trust domain of a root that was read.
func domainOf(root *x509.Certificate) spiffeid.TrustDomain {
	id, _ := spiffeid.FromURI(root.URIs[0]) // parseRoot has checked it
	return id.TrustDomain()
}

// moved reports whether the newer one of two roots signs.
func moved(roots []*x509.Certificate) bool {
	return len(roots) == 2 && roots[0].NotBefore.After(roots[1].NotBefore)
}

// makeCross returns a certificate of a root's key, signed by the root before it. The roots of an
// authority have one name, so the cross certificate names the key of its issuer: otherwise
// BoringSSL takes it for a root of its own.
func makeCross(root, before *x509.Certificate, key *ecdsa.PrivateKey, now time.Time) (*x509.Certificate, error) {
	template := &x509.Certificate{
		Subject: root.Subject, URIs: root.URIs, SubjectKeyId: root.SubjectKeyId, AuthorityKeyId: before.SubjectKeyId,
		NotBefore: now.Add(-backdated), NotAfter: root.NotAfter,
		KeyUsage: root.KeyUsage, BasicConstraintsValid: true, IsCA: true,
	}
	if before.NotAfter.Before(template.NotAfter) {
		template.NotAfter = before.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, before, root.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func parseCross(text []byte) (*x509.Certificate, error) {
	blocks, err := blocksOf(text, certificateBlock)
	if err == nil && len(blocks) != 1 {
		err = fmt.Errorf("it has %d certificates instead of one", len(blocks))
	}
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(blocks[0])
}

func checkCross(cross, root, before *x509.Certificate) error {
	if !sameKey(cross, root) {
		return errors.New("it has another key than the root")
	}
	return cross.CheckSignatureFrom(before)
}

// Fingerprint returns the SHA-256 hash of a certificate as openssl prints it.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// sameKey reports whether two certificates are of one key.
func sameKey(a, b *x509.Certificate) bool {
	key, ok := a.PublicKey.(*ecdsa.PublicKey)
	return ok && key.Equal(b.PublicKey)
}
