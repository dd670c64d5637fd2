// Package authority makes certificates for tests: an authority of its own, and
// whatever it signs. Unless asked otherwise it lasts an hour, and nobody keeps it.
//
// An [Authority] may be used from any goroutine.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"time"
)

// TB is what an authority needs of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Authority signs certificates.
type Authority struct {
	t    TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // its own certificate
}

// Pair is a certificate with its key, in PEM form.
type Pair struct{ Cert, Key []byte }

// New returns an authority.
func New(t TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	template := template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatalf("authority %s: %v", name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatalf("authority %s: %v", name, err)
	}
	a.PEM = encode("CERTIFICATE", der)
	return a
}

// Issue signs a certificate for loopback with URIs among its names.
func (a *Authority) Issue(name string, uris ...string) Pair {
	a.t.Helper()
	return a.IssueUntil(time.Now().Add(time.Hour), name, uris...)
}

// IssueUntil is Issue with the time, in whole seconds, at which it expires.
func (a *Authority) IssueUntil(end time.Time, name string, uris ...string) Pair {
	a.t.Helper()
	template := template(name)
	template.NotAfter = end
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			a.t.Fatalf("%s: %v", name, err)
		}
		template.URIs = append(template.URIs, uri)
	}
	key := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return Pair{encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)}
}

// Client is the configuration of a client that trusts the authority and shows
// a certificate, if there is one.
func (a *Authority) Client(shows ...Pair) *tls.Config {
	a.t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: "localhost", NextProtos: []string{"h2"}}
	config.RootCAs.AddCert(a.cert)
	for _, p := range shows {
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			a.t.Fatalf("pair: %v", err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return config
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatalf("key: %v", err)
	}
	return key
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
