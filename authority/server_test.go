package authority_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
)

var serverNames = []string{"isthmus.example.com", "localhost", "10.0.0.1", "::1"}

// server issues the certificate of a listener, and returns its chain.
func server(t *testing.T, a *authority.Authority, now time.Time) (chain []*x509.Certificate) {
	t.Helper()
	pair, err := a.Issuer(time.Hour).IssueServer(serverNames, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, der := range pair.Certificate {
		one, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, one)
	}
	return chain
}

// between returns the certificates of a chain between its leaf and the root.
func between(chain []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, one := range chain[1:] {
		pool.AddCert(one)
	}
	return pool
}

// rootOf returns the authorities that clients of an authority trust.
func rootOf(a *authority.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Root())
	return pool
}

func TestTheCertificateOfAListenerIsForItsNames(t *testing.T) {
	t.Parallel()
	a, _ := create(t)
	now := time.Now()
	chain := server(t, a, now)
	for _, name := range serverNames {
		if _, err := chain[0].Verify(x509.VerifyOptions{DNSName: name, Roots: rootOf(a), Intermediates: between(chain), CurrentTime: now}); err != nil {
			t.Errorf("a client of %s: %v", name, err)
		}
	}
	for _, name := range []string{"web.example.com", "10.0.0.2"} {
		if _, err := chain[0].Verify(x509.VerifyOptions{DNSName: name, Roots: rootOf(a), Intermediates: between(chain), CurrentTime: now}); err == nil {
			t.Errorf("a client of %s takes it", name)
		}
	}
	until := a.Issuing().NotAfter
	if late := server(t, a, until.Add(-time.Minute))[0]; !late.NotAfter.Equal(until) {
		t.Errorf("it ends at %s, and its issuer at %s", late.NotAfter, until)
	}
	if _, err := a.Issuer(time.Hour).IssueServer(serverNames, until); err == nil {
		t.Error("an expired issuer signs")
	}
}

func TestTheCertificateOfAListenerProvesNoWorkload(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	now := time.Now()
	chain := server(t, a, now)
	leaf := chain[0]
	if len(leaf.URIs) != 0 || len(leaf.Subject.Names) != 0 || leaf.IsCA || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("URIs %v, subject %s, authority %t, usages %v", leaf.URIs, leaf.Subject, leaf.IsCA, leaf.ExtKeyUsage)
	}
	if _, err := (&certs.Authorities{Own: rootOf(a)}).Hold(chain, now); err == nil {
		t.Error("it is valid as the certificate of a client")
	}
	v, err := identity.New(identity.Config{TrustDomain: "cluster.local", Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := v.Prove(t.Context(), identity.Evidence{Chains: [][]*x509.Certificate{{leaf}}, Secure: true}); err == nil {
		t.Errorf("it proves %+v", p)
	}
	for _, name := range []string{web, "spiffe://cluster.local", "*.example.com", ""} {
		if _, err := a.Issuer(time.Hour).IssueServer([]string{name}, now); err == nil {
			t.Errorf("a listener gets the name %q", name)
		}
	}
	if _, err := a.Issuer(time.Hour).IssueServer(nil, now); err == nil {
		t.Error("a listener without a name gets a certificate")
	}
}

// meet has a client connect to a listener, and returns the certificate that the listener shows.
func meet(t *testing.T, listener *tls.Config, client *tls.Config) (*x509.Certificate, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	s, c := tls.Server(ours, listener), tls.Client(theirs, client)
	var serverErr error
	var both sync.WaitGroup
	both.Go(func() {
		if serverErr = s.HandshakeContext(context.Background()); serverErr != nil {
			ours.Close()
			return
		}
		_, serverErr = s.Write([]byte("."))
	})
	clientErr := c.HandshakeContext(context.Background())
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // a rejection of TLS 1.3 comes after the handshake
	}
	both.Wait()
	if err := errors.Join(serverErr, clientErr); err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0], nil
}

// faulty is an issuer that may fail, or sign with another key.
type faulty struct {
	*authority.Issuer
	fails  error
	signer string
}

func (f *faulty) IssueServer(names []string, now time.Time) (tls.Certificate, error) {
	if f.fails != nil {
		return tls.Certificate{}, f.fails
	}
	return f.Issuer.IssueServer(names, now)
}

func (f *faulty) Signer() string { return f.signer + f.Issuer.Signer() }

func TestTheCertificateOfAListenerIsRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := create(t)
		by := &faulty{Issuer: a.Issuer(time.Hour)}
		k, err := certs.New(certs.Files{Issuer: by, Names: serverNames, Optional: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &tls.Config{RootCAs: rootOf(a), ServerName: "localhost"}
		shown := func() string {
			t.Helper()
			leaf, err := meet(t, k.TLS(), client)
			if err != nil {
				t.Fatal(err)
			}
			return leaf.SerialNumber.String()
		}
		first := shown()
		time.Sleep(29 * time.Minute)
		if shown() != first {
			t.Error("it is renewed before half of its validity")
		}
		by.fails = errors.New("the root expired")
		time.Sleep(2 * time.Minute)
		if shown() != first || k.Err() == nil || !strings.Contains(k.Err().Error(), "the root expired") {
			t.Errorf("while it cannot be renewed: %v", k.Err())
		}
		by.fails = nil
		second := shown()
		if second == first || k.Err() != nil || !k.Issued() {
			t.Errorf("it is not renewed: %v", k.Err())
		}
		if by.signer = "another "; shown() == second {
			t.Error("the certificate of the key before stays")
		}
		if authorities := k.ClientCAs(); !authorities.Own.Equal(rootOf(a)) || authorities != k.ClientCAs() {
			t.Error("the authorities of clients are not those of the issuer")
		}
	})
}
