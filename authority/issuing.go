package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/internal/lockfile"
)

// The bounds of the validity of issuing certificates.
const (
	ShortestIssuing = time.Hour
	LongestIssuing  = 90 * 24 * time.Hour
)

// signer is a certificate of the authority with its key.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issuing is the content of the file of issuing certificates. No certificate can permit the
// names of listeners and constrain those of workloads to identities, so there are two.
type issuing struct{ workloads, servers signer }

// noHost is a host without names and identities (RFC 2606). An issuing certificate permits it
// alone where it permits no name of a form: OpenSSL ignores an empty excluded URI or e-mail address,
// and Java cannot read such a certificate.
const noHost = "invalid"

// makeIssuing returns issuing certificates for new keys. They may sign no further authority and
// do not outlive the root.
func makeIssuing(domain spiffeid.TrustDomain, by signer, now time.Time, ttl time.Duration) (i issuing, err error) {
	end := now.Add(ttl)
	if by.cert.NotAfter.Before(end) {
		end = by.cert.NotAfter
	}
	template := func(of string) *x509.Certificate {
		return &x509.Certificate{
			Subject:   pkix.Name{Organization: []string{domain.Name()}, CommonName: "issuer of " + of},
			NotBefore: now.Add(-clockSkew), NotAfter: end, // all certificates are verified by it at once
			KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
			PermittedDNSDomainsCritical: true, // of all name constraints
			PermittedEmailAddresses:     []string{noHost},
		}
	}
	all := func(bits int) *net.IPNet { return &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)} }
	workloads, servers := template("workloads"), template("servers")
	workloads.URIs = []*url.URL{domain.ID().URL()}
	workloads.PermittedURIDomains = constrained(domain.Name())
	workloads.PermittedDNSDomains, workloads.ExcludedIPRanges = []string{noHost}, []*net.IPNet{all(32), all(128)}
	servers.PermittedURIDomains = []string{noHost}
	servers.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if i.workloads, err = by.certify(workloads); err == nil {
		i.servers, err = by.certify(servers)
	}
	if err != nil {
		err = fmt.Errorf("no issuing certificate can be made for trust domain %s: %w", domain.Name(), err)
	}
	return i, err
}

// constrained returns the constraint on the identities of a trust domain. Java rejects a chain with the
// constraint if the name is not a host name, as one with "_". Such names have no
// constraint, and are compared as ever.
func constrained(domain string) []string {
	if !hostName.MatchString(domain) {
		return nil
	}
	return []string{domain}
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z]([a-z0-9-]*[a-z0-9])?$`)

// certify signs an authority with a new key.
func (s signer) certify(template *x509.Certificate) (signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signer{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, key.Public(), s.key)
	if err != nil {
		return signer{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return signer{cert, key}, err
}

// encode returns the content of the file: each certificate, and its key behind it.
func (i issuing) encode() (text []byte, err error) {
	for _, s := range []signer{i.workloads, i.servers} {
		der, err := x509.MarshalPKCS8PrivateKey(s.key)
		if err != nil {
			return nil, err
		}
		text = append(text, encodeCertificates([]*x509.Certificate{s.cert})...)
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})...)
	}
	return text, nil
}

// parseIssuing parses the file of issuing certificates. Its errors contain nothing of the keys.
func parseIssuing(text []byte) (issuing, error) {
	blocks, err := blocksOf(text, certificateBlock, keyBlock)
	if err == nil && len(blocks) != 4 {
		err = errors.New("it needs two certificates, each with its key behind it")
	}
	if err != nil {
		return issuing{}, err
	}
	var both [2]signer
	for i := range both {
		if both[i].cert, err = x509.ParseCertificate(blocks[2*i]); err != nil {
			return issuing{}, err
		}
		if both[i].key, err = parseKey(blocks[2*i+1]); err != nil {
			return issuing{}, err
		}
		if !fits(both[i].key, both[i].cert.PublicKey) {
			return issuing{}, errors.New("a key in it does not belong to the certificate before it")
		}
	}
	return issuing{both[0], both[1]}, nil
}

// root returns the root that has signed the issuing certificates.
func (i issuing) root(roots []*x509.Certificate) (*x509.Certificate, error) {
	domain := domainOf(roots[0]).Name()
	if !slices.Equal(i.workloads.cert.PermittedURIDomains, constrained(domain)) || !slices.Equal(i.servers.cert.PermittedURIDomains, []string{noHost}) {
		return nil, fmt.Errorf("its certificates are not the issuer of workloads of trust domain %s and the issuer of servers", domain)
	}
	for _, root := range roots {
		if i.workloads.cert.CheckSignatureFrom(root) == nil && i.servers.cert.CheckSignatureFrom(root) == nil {
			return root, nil
		}
	}
	return nil, fmt.Errorf("no root in %s has signed it", RootFile)
}

// readIssuing reads the issuing certificates, and the root that has signed them. A folder without
// them is one of an earlier version, and its root signs.
func (d folder) readIssuing(roots []*x509.Certificate) (i issuing, root *x509.Certificate, err error) {
	text, err := d.read(IssuerFile)
	if err != nil {
		return i, nil, err
	}
	if i, err = parseIssuing(text); err == nil {
		root, err = i.root(roots)
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be used: %w; restore it from your backup, or make another with 'isthmus ca issuer --dir %s'", d.path(IssuerFile), err, d)
	}
	return i, root, err
}

// writeIssuing makes issuing certificates, which sign from then on. The caller has the lock of the
// folder.
func (d folder) writeIssuing(by signer, now time.Time, ttl time.Duration) error {
	if !now.Before(by.cert.NotAfter) {
		return expired(by.cert)
	}
	if err := d.clock(by.cert, now); err != nil {
		return err
	}
	i, err := makeIssuing(domainOf(by.cert), by, now, ttl)
	if err != nil {
		return err
	}
	text, err := i.encode()
	if err != nil {
		return err
	}
	return d.replace(IssuerFile, private, text)
}

// clock returns an error if a time is before the root, or before the issuing certificates, if they can
// be read: they would be replaced by some that end too early.
func (d folder) clock(root *x509.Certificate, now time.Time) error {
	since := root.NotBefore
	if i, _, err := d.readIssuing([]*x509.Certificate{root}); err == nil && i.workloads.cert.NotBefore.After(since) {
		since = i.workloads.cert.NotBefore
	}
	if now.Before(since) {
		return fmt.Errorf("the clock of this machine shows %s, and the authority in %s has certificates from %s: correct the clock", now.UTC().Format(time.RFC3339), d, since.UTC().Format(time.RFC3339))
	}
	return nil
}

// issuedBy returns an error unless a root has signed the issuing certificates, if there are any.
func (d folder) issuedBy(root *x509.Certificate) error {
	if !d.has(IssuerFile) {
		return nil
	}
	_, _, err := d.readIssuing([]*x509.Certificate{root})
	return err
}

// RenewIssuing makes the next issuing certificates, which are valid for ttl, or until the root ends.
// They sign from then on. The key of the signing root is in the file rootKey; if that is empty, it is in
// the folder. The earlier issuing certificates are lost with their keys, and may be damaged.
func RenewIssuing(dir, rootKey string, ttl time.Duration, now time.Time) (*Authority, error) {
	d := folder(dir)
	if _, err := OpenFolder(dir); err != nil { // before a file for the lock is made
		return nil, err
	}
	if ttl < ShortestIssuing || ttl > LongestIssuing {
		return nil, fmt.Errorf("issuing certificates are valid from %s to %s, not %s", ShortestIssuing, LongestIssuing, ttl)
	}
	lock, err := d.lock()
	if err != nil {
		return nil, err
	}
	defer lockfile.Release(lock)
	f, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	if rootKey == "" {
		rootKey = d.path(RootKeyFile)
	}
	keys, err := readKeys(rootKey)
	if err != nil {
		return nil, fmt.Errorf("the key of the root is needed: %w; name its file with --root-key", err)
	}
	by := signer{f.roots[0], keyOf(f.roots[0], keys)}
	if by.key == nil {
		return nil, fmt.Errorf("%s is not the key of %s: name the file with the key of that root", rootKey, d.path(RootFile))
	}
	if err := d.writeIssuing(by, now, ttl); err != nil {
		return nil, err
	}
	return Open(dir)
}

// The validity that is left when the next issuing certificate is due: at most as long, and for shorter
// certificates in proportion to their validity.
const (
	renewSoon   = 30 * 24 * time.Hour
	renewAtOnce = 7 * 24 * time.Hour
)

// RenewalDue reports whether the next issuing certificate is to be made soon, or at once, before all
// certificates expire with the one of now. Without an issuing certificate both are false.
func (a *Authority) RenewalDue(now time.Time) (soon, atOnce bool) {
	c := a.Issuing()
	if c == nil {
		return false, false
	}
	left, valid := c.NotAfter.Sub(now), c.NotAfter.Sub(c.NotBefore.Add(clockSkew))
	return left < min(renewSoon, valid/3), left < min(renewAtOnce, valid/12)
}
