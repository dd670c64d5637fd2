package authority_test

import (
	"crypto/x509"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
)

// proves has a client present a token to a verifier that is started now.
func proves(t *testing.T, dir, text, from string) (identity.Proof, error) {
	t.Helper()
	v, err := identity.New(identity.Config{TrustDomain: "cluster.local", Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return v.Prove(t.Context(), identity.Evidence{Authorization: []string{"Bearer " + text}, Peer: netip.MustParseAddr(from), Secure: true})
}

// Each identity that a client can prove can be revoked, and no other.
func TestEveryProvableIdentityCanBeRevoked(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	verifier := func() *identity.Verifier {
		v, err := identity.New(identity.Config{TrustDomain: "cluster.local", Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for text, provable := range map[string]bool{
		web: true, "spiffe://other.example/ns/shop/sa/web": true, "spiffe://cluster.local/ns/shop/sa/WEB_1": true, "spiffe://a_b.c/ns/shop/sa/-.": true,
		"spiffe://cluster.local/ns/Shop/sa/web": false, "spiffe://cluster.local/ns/shop/sa/": false, "spiffe://cluster.local/ns/shop/sa/..": false,
		"spiffe://Other.example/ns/shop/sa/web": false, "spiffe://cluster.local/web": false, "https://cluster.local/ns/shop/sa/web": false, "spiffe:///ns/shop/sa/web": false,
		"spiffe://cluster.local/ns/shop/sa/w%65b": false, "spiffe://cluster.local/ns/shop/sa/web?a": false, "spiffe://me@cluster.local/ns/shop/sa/web": false, "spiffe://cluster.local:1/ns/shop/sa/web": false,
	} {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := identity.Evidence{Chains: [][]*x509.Certificate{{{URIs: []*url.URL{uri}}}}}
		if _, err := verifier().Prove(t.Context(), shown); (err == nil) != provable {
			t.Errorf("%s as a proof: %v", text, err)
		}
		id, err := authority.ParseID(text)
		if (err == nil) != provable || err != nil && !strings.Contains(err.Error(), "not") {
			t.Errorf("%s to revoke: %v", text, err)
		}
		if err != nil {
			continue
		}
		if _, err := a.RevokeAccount(id, begin()); err != nil {
			t.Fatal(err)
		}
		if _, err := verifier().Prove(t.Context(), shown); err == nil || !strings.Contains(err.Error(), "account "+text+" is revoked") {
			t.Errorf("%s, revoked: %v", text, err)
		}
		if err := a.RestoreAccount(id, begin()); err != nil {
			t.Fatal(err)
		}
		if _, err := verifier().Prove(t.Context(), shown); err != nil {
			t.Errorf("%s, taken back: %v", text, err)
		}
	}
}

func TestIsthmusTakesTheTokensUntilTheyAreRevoked(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	now := time.Now()
	first, entry := issueAt(t, a, authority.Grant{Addresses: []string{"10.0.0.0/24"}}, now)
	second, _ := issueAt(t, a, authority.Grant{}, now)
	if p, err := proves(t, dir, first, "10.0.0.9"); err != nil || p.ID != web || p.Token != entry.ID || !p.Expires.Equal(entry.Expires) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := proves(t, dir, first, "10.0.1.9"); err == nil || !strings.Contains(err.Error(), "10.0.1.9") {
		t.Errorf("a token is taken from another address: %v", err)
	}
	_, other := create(t)
	if _, err := proves(t, other, first, "10.0.0.9"); err == nil {
		t.Error("another authority's verifier takes the token")
	}

	if _, err := a.RevokeToken(entry.ID, now); err != nil {
		t.Fatal(err)
	}
	if _, err := proves(t, dir, first, "10.0.0.9"); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a revoked token is taken: %v", err)
	}
	if _, err := proves(t, dir, second, "10.0.0.9"); err != nil {
		t.Errorf("another token of the account: %v", err)
	}
	id := account(t, a, "web")
	if _, err := a.RevokeAccount(id, now); err != nil {
		t.Fatal(err)
	}
	if _, err := proves(t, dir, second, "10.0.0.9"); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a token of a revoked account is taken: %v", err)
	}
	if err := a.RestoreAccount(id, now); err != nil {
		t.Fatal(err)
	}
	if _, err := proves(t, dir, second, "10.0.0.9"); err != nil {
		t.Errorf("a token of an account that was taken back: %v", err)
	}
	if _, err := proves(t, dir, first, "10.0.0.9"); err == nil {
		t.Error("the revoked token is taken again, after its account was revoked and taken back")
	}
}
