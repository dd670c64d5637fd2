package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/identity"
)

func TestCertificatesProveTheirOneURI(t *testing.T) {
	t.Parallel()
	with := func(change func(*x509.Certificate)) *x509.Certificate {
		c := certificate(cart)
		change(c)
		return c
	}
	for name, test := range map[string]struct {
		cert    *x509.Certificate
		problem string
	}{
		"of a workload":          {certificate(cart), ""},
		"without a URI":          {certificate(), "0 URIs"},
		"common name alone":      {&x509.Certificate{Subject: pkix.Name{CommonName: cart}}, "0 URIs"},
		"two URIs":               {certificate(cart, "spiffe://cluster.local/ns/bank/sa/vault"), "2 URIs"},
		"the same URI twice":     {certificate(cart, cart), "2 URIs"},
		"not SPIFFE":             {certificate("https://cluster.local/ns/shop/sa/cart"), "not an identity of the form"},
		"another form":           {certificate("spiffe://cluster.local/shop/cart"), "not of the form"},
		"a longer form":          {certificate(cart + "/x"), "not of the form"},
		"no namespace":           {certificate("spiffe://cluster.local/ns/Shop/sa/cart"), "namespace"},
		"a path that goes up":    {certificate("spiffe://cluster.local/ns/../sa/cart"), "not an identity"},
		"a user in the URI":      {certificate("spiffe://me@cluster.local/ns/shop/sa/cart"), "not an identity"},
		"a query in the URI":     {certificate(cart + "?a"), "not an identity"},
		"a port in the URI":      {certificate("spiffe://cluster.local:1/ns/shop/sa/cart"), "not an identity"},
		"of an authority":        {with(func(c *x509.Certificate) { c.IsCA = true }), "is that of an authority"},
		"signs certificates":     {with(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }), "may sign certificates"},
		"signs revocations":      {with(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign }), "may sign certificates"},
		"signs no data":          {with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }), "lacks the key usage digital signature"},
		"no usages at all":       {with(func(c *x509.Certificate) { c.KeyUsage = 0 }), ""},
		"of a server":            {with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), "lacks the extended usage clientAuth"},
		"of an unknown usage":    {with(func(c *x509.Certificate) { c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3}} }), "lacks the extended usage clientAuth"},
		"of a client":            {with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), ""},
		"of any usage":           {with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }), ""},
		"of more key usages":     {with(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement }), ""},
		"no trust domain at all": {certificate("spiffe:///ns/shop/sa/cart"), "not an identity"},
	} {
		for _, v := range []*identity.Verifier{nil, verifier(t, identity.Config{})} {
			proof, err := v.Prove(t.Context(), identity.Evidence{Chains: chains(test.cert)})
			if test.problem == "" {
				want := identity.Proof{ID: cart, TrustDomain: "cluster.local", Namespace: "shop", Account: "cart", By: identity.ByCertificate}
				if err != nil || proof != want {
					t.Errorf("%s: %+v, %v", name, proof, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), test.problem) || proof != (identity.Proof{}) {
				t.Errorf("%s: %+v, %v; want an error with %q", name, proof, err, test.problem)
			}
		}
	}
}

func TestWithoutEvidenceNothingIsProven(t *testing.T) {
	t.Parallel()
	for _, v := range []*identity.Verifier{nil, verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t)}})} {
		if proof, err := v.Prove(t.Context(), identity.Evidence{Secure: true}); err != nil || proof != (identity.Proof{}) {
			t.Errorf("%+v, %v", proof, err)
		}
	}
}

// A verifier without issuers ignores tokens, as Isthmus did before it took any.
func TestWithoutIssuersTokensAreNoEvidence(t *testing.T) {
	t.Parallel()
	for _, v := range []*identity.Verifier{nil, verifier(t, identity.Config{})} {
		if proof, err := v.Prove(t.Context(), bearer("x")); err != nil || proof != (identity.Proof{}) || v.TakesTokens() {
			t.Errorf("%+v, %v", proof, err)
		}
	}
}
