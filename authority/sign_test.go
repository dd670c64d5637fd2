package authority_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/isthmus-mesh/isthmus/authority"
)

const web = "spiffe://cluster.local/ns/shop/sa/web"

func publicKey(t *testing.T, curve elliptic.Curve) crypto.PublicKey {
	t.Helper()
	key, err := newKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newKey(curve elliptic.Curve) (crypto.PublicKey, error) {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

func TestACertificateIsAnX509SVID(t *testing.T) {
	t.Parallel()
	a, _ := create(t)
	now := time.Now()
	chain, err := a.Sign(web, publicKey(t, elliptic.P256()), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	both := certificates(t, chain)
	if len(both) != 2 || !both[1].Equal(a.Issuing()) {
		t.Fatalf("the chain has %d certificates", len(both))
	}
	leaf := both[0]
	bundle := x509bundle.FromX509Authorities(a.TrustDomain(), []*x509.Certificate{a.Root()})
	if id, _, err := x509svid.Verify(both, bundle, x509svid.WithTime(now)); err != nil || id.String() != web {
		t.Errorf("it proves %s: %v", id, err)
	}
	if leaf.IsCA || !leaf.BasicConstraintsValid || leaf.KeyUsage != x509.KeyUsageDigitalSignature || len(leaf.ExtKeyUsage) != 2 {
		t.Errorf("authority %t, usages %b and %v", leaf.IsCA, leaf.KeyUsage, leaf.ExtKeyUsage)
	}
	for _, e := range leaf.Extensions {
		const keyUsage, names = "2.5.29.15", "2.5.29.17" // the names are critical, for there is no subject
		if id := e.Id.String(); (id == keyUsage || id == names) && !e.Critical {
			t.Errorf("extension %s is not critical", id)
		}
	}
	if len(leaf.Subject.Names) != 0 || len(leaf.URIs) != 1 || len(leaf.DNSNames)+len(leaf.IPAddresses) != 0 {
		t.Errorf("the names are %s and %v", leaf.Subject, leaf.URIs)
	}
	if got := leaf.NotAfter.Sub(now.Truncate(time.Second)); got < time.Hour-time.Second || got > time.Hour {
		t.Errorf("it is valid for %s", got)
	}
}

func TestACertificateDoesNotOutliveItsIssuer(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	check := func(a *authority.Authority, until time.Time) {
		t.Helper()
		chain, err := a.Sign(web, publicKey(t, elliptic.P384()), until.Add(-time.Hour), 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if leaf := certificates(t, chain)[0]; !leaf.NotAfter.Equal(until) {
			t.Errorf("valid until %s, the issuer until %s", leaf.NotAfter, until)
		}
		if _, err := a.Sign(web, publicKey(t, elliptic.P256()), until, time.Hour); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("an expired issuer signs: %v", err)
		}
	}
	check(a, a.Issuing().NotAfter)
	last, err := authority.RenewIssuing(dir, "", authority.LongestIssuing, a.Root().NotAfter.Add(-2*time.Hour))
	if err != nil || !last.Issuing().NotAfter.Equal(a.Root().NotAfter) {
		t.Fatalf("the issuing certificate ends at %s, and the root at %s: %v", last.Issuing().NotAfter, a.Root().NotAfter, err)
	}
	check(last, a.Root().NotAfter)
	check(earlier(t, dir), a.Root().NotAfter)
	if _, err := authority.RenewIssuing(dir, "", authority.LongestIssuing, a.Root().NotAfter); err == nil || !strings.Contains(err.Error(), "the root expired") {
		t.Errorf("an expired root signs an issuing certificate: %v", err)
	}
}

func TestOnlyWorkloadsOfTheTrustDomainGetCertificates(t *testing.T) {
	t.Parallel()
	a, _ := create(t)
	fine := publicKey(t, elliptic.P256())
	other, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		id  string
		key crypto.PublicKey
		ttl time.Duration
	}{
		"another trust domain": {"spiffe://other.example/ns/shop/sa/web", fine, time.Hour},
		"the trust domain":     {"spiffe://cluster.local", fine, time.Hour},
		"no identity":          {"https://cluster.local/ns/shop/sa/web", fine, time.Hour},
		"nothing":              {"", fine, time.Hour},
		"another kind of key":  {web, other, time.Hour},
		"a weak curve":         {web, publicKey(t, elliptic.P224()), time.Hour},
		"no key":               {web, nil, time.Hour},
		"too short":            {web, fine, time.Second},
		"too long":             {web, fine, 91 * 24 * time.Hour},
	} {
		if chain, err := a.Sign(test.id, test.key, time.Now(), test.ttl); err == nil || chain != nil {
			t.Errorf("%s gets a certificate", name)
		}
	}
}
