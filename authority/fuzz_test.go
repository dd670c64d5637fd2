package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// A file of tokens that is read is written again without a loss.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{"tokens": [{"id": "A", "namespace": "shop", "account": "web", "addresses": ["10.0.0.0/24"], "issued": "2026-01-01T00:00:00Z", "expires": "2026-02-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"tokens": null} {}`))
	f.Add([]byte(`{"tokens": [{"id": ""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseTokens(text)
		if err != nil {
			return
		}
		first, err := list.encode(time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTokens(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := again.encode(time.Time{}); err != nil || !bytes.Equal(first, second) || len(again.Tokens) != len(list.Tokens) {
			t.Errorf("%s is written as %s: %v", first, second, err)
		}
	})
}

// A file of roots that is read is written again without a loss, and each root in it is of the
// trust domain.
func FuzzRoots(f *testing.F) {
	domain := spiffeid.RequireTrustDomainFromString("cluster.local")
	var roots []*x509.Certificate
	for i := range 2 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			f.Fatal(err)
		}
		root, err := makeRoot(domain, key, time.Now().Add(time.Duration(i)*time.Hour))
		if err != nil {
			f.Fatal(err)
		}
		roots = append(roots, root)
	}
	both := encodeCertificates(roots)
	f.Add(encodeCertificates(roots[:1]))
	f.Add(both)
	f.Add(both[:len(both)-40])
	f.Add(slices.Concat(both, both))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, of, err := parseRoots(text)
		if err != nil {
			return
		}
		again, _, err := parseRoots(encodeCertificates(found))
		if err != nil || !slices.EqualFunc(found, again, (*x509.Certificate).Equal) || len(found) == 0 || len(found) > 2 {
			t.Errorf("%d roots are read as %d: %v", len(found), len(again), err)
		}
		for _, root := range found {
			if domainOf(root) != of {
				t.Errorf("a root of %s is among those of %s", domainOf(root), of)
			}
		}
	})
}

// A record of a rotation that is read has all that the last step needs.
func FuzzRotation(f *testing.F) {
	f.Add([]byte(`{"root": "AB:CD", "since": "2026-01-01T00:00:00Z", "longest": "24h0m0s"}`))
	f.Add([]byte(`{"root": "AB:CD", "since": "2026-01-01T00:00:00Z", "longest": "-1h"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRotation(text)
		if err != nil {
			return
		}
		if longest, err := time.ParseDuration(r.Longest); err != nil || longest <= 0 || r.Root == "" || r.Since.IsZero() {
			t.Errorf("%q is read as %+v", text, r)
		}
	})
}

// A file of issuing certificates that is read is written again without a loss, and each key fits its
// certificate.
func FuzzIssuing(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	root, err := makeRoot(spiffeid.RequireTrustDomainFromString("cluster.local"), key, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	made, err := makeIssuing(domainOf(root), signer{root, key}, time.Now(), LongestIssuing)
	if err != nil {
		f.Fatal(err)
	}
	text, err := made.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add(slices.Concat(text, text))
	f.Add(encodeCertificates([]*x509.Certificate{root, root}))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := parseIssuing(text)
		if err != nil {
			return
		}
		first, err := found.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseIssuing(first)
		if err != nil || !again.workloads.cert.Equal(found.workloads.cert) || !again.servers.key.Equal(found.servers.key) {
			t.Errorf("%v: the file is read again as another", err)
		}
		if !fits(found.workloads.key, found.workloads.cert.PublicKey) || !fits(found.servers.key, found.servers.cert.PublicKey) {
			t.Error("a key does not fit its certificate")
		}
		_, _ = found.root([]*x509.Certificate{root})
	})
}
