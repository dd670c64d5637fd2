package files

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// The files of a pair, as indices.
const (
	certFile = iota
	keyFile
	authoritiesFile
	fileCount
)

// layout is the names of the files of a pair.
type layout [fileCount]string

// layouts returns the known ones: of Kubernetes and cert-manager, and of spiffe-helper.
func layouts() []layout {
	return []layout{{"tls.crt", "tls.key", "ca.crt"}, {"svid.pem", "svid_key.pem", "svid_bundle.pem"}}
}

// pair is a certificate with its key and its authorities. It is never changed.
type pair struct {
	leaf        secrets.Leaf // without the end of its window
	path        string       // of the certificate's file
	notBefore   time.Time
	authorities []*x509.Certificate
	anchors     []string // the authorities that the chain leads to, in DER form
}

func (p *pair) equal(o *pair) bool {
	return o != nil && p.leaf.Generation == o.leaf.Generation && slices.EqualFunc(p.authorities, o.authorities, (*x509.Certificate).Equal)
}

func (p *pair) expired(now time.Time) bool { return now.After(p.leaf.NotAfter) }

// reading is the content of the files of a pair.
type reading struct {
	dir   string
	names layout
	text  [fileCount][]byte
}

// fault returns an error about a file.
func (r reading) fault(file int, err error) error {
	return fmt.Errorf("%s: %w", filepath.Join(r.dir, r.names[file]), err)
}

// pair returns the pair if it may be used at a time by workloads of a trust domain. The one in use
// may have expired.
func (r reading) pair(domain string, used *pair, now time.Time) (*pair, error) {
	chain, err := certificatesIn(r.text[certFile])
	if err != nil {
		return nil, r.fault(certFile, err)
	}
	identity, err := checkLeaf(chain[0], domain)
	if err != nil {
		return nil, r.fault(certFile, err)
	}
	key, err := keyOf(r.text[certFile], r.text[keyFile])
	if err != nil {
		return nil, r.fault(keyFile, err)
	}
	authorities, err := certificatesIn(r.text[authoritiesFile])
	if err == nil {
		err = checkAuthorities(authorities)
	}
	if err != nil {
		return nil, r.fault(authoritiesFile, err)
	}
	text := encode(chain)
	hash := sha256.Sum256(text)
	generation := hex.EncodeToString(hash[:])
	if used != nil && used.leaf.Generation == generation && used.expired(now) {
		now = used.leaf.NotAfter
	}
	anchors, err := anchorsOf(chain, authorities, now)
	if err != nil {
		return nil, r.fault(certFile, err)
	}
	return &pair{
		path: filepath.Join(r.dir, r.names[certFile]), notBefore: chain[0].NotBefore, authorities: authorities, anchors: anchors,
		leaf: secrets.Leaf{
			Identity: identity, Chain: text, Key: key, Generation: generation, Window: secrets.Window{From: chain[0].NotBefore}, NotAfter: chain[0].NotAfter,
		},
	}, nil
}

// mostCertificates bounds the certificates of a file.
const mostCertificates = 100

// certificatesIn returns the certificates of a PEM file, of which there is at least one.
func certificatesIn(text []byte) (all []*x509.Certificate, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if text = rest; block.Type != certificateBlock {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w; have it issued again", len(all)+1, err)
		}
		if all = append(all, one); len(all) > mostCertificates {
			return nil, fmt.Errorf("it has more than %d certificates; remove the unused ones", mostCertificates)
		}
	}
	switch {
	case bytes.Contains(text, []byte("-----BEGIN")):
		return nil, errors.New("it ends within a certificate; write the whole file")
	case len(all) == 0:
		return nil, errors.New("it has no certificate in PEM form; write the certificates there")
	}
	return all, nil
}

// checkLeaf returns the identity of the certificate of a workload, which is both a server and a
// client.
func checkLeaf(c *x509.Certificate, domain string) (identity string, err error) {
	id, _, err := spiffe.Leaf(c, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return "", err
	}
	switch {
	case id.TrustDomain().Name() != domain:
		return "", fmt.Errorf("%s is not of the trust domain %s; have it issued for that, or set identity.trustDomain", id, domain)
	case c.KeyUsage == 0:
		return "", fmt.Errorf("the certificate of %s lacks the key usage digital signature; have it issued with that", id)
	}
	return id.String(), checkKind(c)
}

// checkKind reports the keys that Envoy rejects.
func checkKind(c *x509.Certificate) error {
	const shortest = 2048
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() >= shortest {
			return nil
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() || key.Curve == elliptic.P384() || key.Curve == elliptic.P521() {
			return nil
		}
	}
	return fmt.Errorf("keys of this kind (%s) are rejected by Envoy; use ECDSA P-256, or RSA from %d bits", c.PublicKeyAlgorithm, shortest)
}

// keyOf returns the key of a certificate in the form PKCS #8. No error has text of the file.
func keyOf(cert, key []byte) ([]byte, error) {
	const belongs = "does not match"
	read, err := tls.X509KeyPair(cert, key)
	switch {
	case err != nil && strings.Contains(err.Error(), belongs):
		return nil, errors.New("the key does not belong to the certificate; write both")
	case err != nil:
		return nil, errors.New("it has no private key in PEM form; write the key, without a password")
	}
	der, err := x509.MarshalPKCS8PrivateKey(read.PrivateKey)
	if err != nil {
		return nil, errors.New("it has a key of an unknown kind; use ECDSA P-256")
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// checkAuthorities reports a certificate that is none of an authority.
func checkAuthorities(all []*x509.Certificate) error {
	for i, one := range all {
		if !one.BasicConstraintsValid || !one.IsCA {
			return fmt.Errorf("certificate %d is not that of an authority; write the authorities there", i+1)
		}
	}
	return nil
}

// anchorsOf returns the authorities to which a chain leads at a time.
func anchorsOf(chain, authorities []*x509.Certificate, now time.Time) (anchors []string, err error) {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, one := range authorities {
		roots.AddCert(one)
	}
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	found, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired { // its text has the time of now
		return nil, fmt.Errorf("a certificate is valid from %s to %s, and not now; write a valid one, or compare the clocks",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate does not lead to its authorities now: %w; write a valid certificate with the certificates between, and its authorities", err)
	}
	for _, one := range found {
		anchors = append(anchors, string(one[len(one)-1].Raw))
	}
	return anchors, nil
}

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// encode returns certificates in PEM form.
func encode(all []*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, one := range all {
		_ = pem.Encode(&b, &pem.Block{Type: certificateBlock, Bytes: one.Raw}) // a buffer takes everything
	}
	return b.Bytes()
}
