package files_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/secrets/files"
)

const (
	domain = "cluster.local"
	cart   = "spiffe://cluster.local/ns/shop/sa/cart"
	till   = "spiffe://cluster.local/ns/shop/sa/till"
)

// fataler is a test, or a draw, as the rig needs it.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// authority signs certificates with any content.
type authority struct {
	t    fataler
	cert *x509.Certificate
	key  crypto.Signer
}

// written is the content of the files of a pair.
type written struct{ cert, key, authorities []byte }

func newAuthority(t fataler) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = newKey(t)
	a.cert = &x509.Certificate{
		SerialNumber: serial(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert.Subject.CommonName = a.cert.SerialNumber.String()
	a.cert = a.sign(a.cert, a.key.Public())
	return a
}

func newKey(t fataler) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	return key
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return n
}

func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		a.t.Fatalf("certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatalf("certificate: %v", err)
	}
	return cert
}

// issue signs a certificate, with changes to a good one.
func (a *authority) issue(id string, changes ...func(*x509.Certificate)) written {
	a.t.Helper()
	return a.issueFor(newKey(a.t), id, changes...)
}

func (a *authority) issueFor(key crypto.Signer, id string, changes ...func(*x509.Certificate)) written {
	a.t.Helper()
	uri, err := url.Parse(id)
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{uri}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, change := range changes {
		change(template)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatalf("key: %v", err)
	}
	return written{encode(a.sign(template, key.Public())), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), encode(a.cert)}
}

func encode(all ...*x509.Certificate) (text []byte) {
	for _, one := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	return text
}

// The layouts.
var (
	mounted = [3]string{"tls.crt", "tls.key", "ca.crt"}
	helper  = [3]string{"svid.pem", "svid_key.pem", "svid_bundle.pem"}
)

// write writes the files of a pair, one after the other.
func (w written) write(t fataler, dir string, names [3]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("%v", err)
	}
	for i, text := range [][]byte{w.cert, w.key, w.authorities} {
		writeFile(t, filepath.Join(dir, names[i]), text)
	}
}

func writeFile(t fataler, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
}

// lines are the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open opens a folder without following it.
func open(t fataler, dir string) (*files.Issuer, *lines) {
	t.Helper()
	log := &lines{}
	i, err := files.Open(dir, domain, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return i, log
}

// follow follows a folder until stop is called.
func follow(t fataler, dir string) (i *files.Issuer, log *lines, stop func()) {
	t.Helper()
	i, log = open(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- i.Run(ctx) }()
	return i, log, func() { cancel(); <-ended }
}

// serves returns the certificate that is served to an identity, nil if there is none. It fails
// if the key is another one's.
func serves(t fataler, i *files.Issuer, id string) []byte {
	t.Helper()
	leaf, err := i.Issue(id, time.Now())
	if err != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(leaf.Chain, leaf.Key)
	if err != nil {
		t.Fatalf("a mismatched pair is served: %v", err)
	}
	roots := x509.NewCertPool()
	if roots.AppendCertsFromPEM(i.Bundle().Authorities); pair.Leaf.NotAfter.After(time.Now()) {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now()}); err != nil {
			t.Fatalf("a certificate without its authority is served: %v", err)
		}
	}
	if leaf.Identity != id || !i.Current(leaf) || leaf.Window.Until.Before(time.Now()) {
		t.Fatalf("%s is served as that of %s, current: %t, until %s", leaf, id, i.Current(leaf), leaf.Window.Until)
	}
	return leaf.Chain
}

// mustServe is that an identity is served the certificate of a pair.
func mustServe(t *testing.T, i *files.Issuer, id string, want written) {
	t.Helper()
	if !bytes.Equal(serves(t, i, id), want.cert) {
		t.Errorf("%s is served another certificate; the problems are %q", id, i.Problems())
	}
}

// mustSay is that the only problem says something, and was logged once.
func mustSay(t *testing.T, i *files.Issuer, log *lines, want ...string) {
	t.Helper()
	problems := i.Problems()
	if len(problems) != 1 {
		t.Fatalf("the problems are %v, want one with %q", problems, want)
	}
	for _, part := range want {
		if !strings.Contains(problems[0].Reason, part) || strings.Count(log.String(), part) == 0 {
			t.Errorf("the problem is %v, want %q, and logged is\n%s", problems[0], part, log)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("logged are %d problems:\n%s", n, log)
	}
}
