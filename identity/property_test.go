package identity_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/identity"
)

// drawn is one attempt in plain values: the evidence is made of it, and so is the expected
// outcome, which knows nothing of tokens.
type drawn struct {
	secure                bool
	peer                  string
	cert                  string // empty: none
	values                int    // of the authorization header
	scheme                string
	issuer, signer        string // named by the token, and the owner of the key that signed
	kid                   string
	algorithm             jose.SignatureAlgorithm
	audience              []string
	domain, ns, sa        string
	spiffeSubject         bool
	lives                 time.Duration
	begins                time.Duration
	blocks                []string // nil: no claim
	tampered, revokedName bool
}

// The issuers of the property: a has RSA, b has P-256 and vouches for shop alone.
var propertyIssuers = []string{"https://a", "https://b"}

func draw(t *rapid.T) drawn {
	often := func(label string, good any, bad ...any) any {
		if len(bad) == 0 || rapid.IntRange(0, 9).Draw(t, label+" is usual") > 0 {
			return good
		}
		return rapid.SampledFrom(bad).Draw(t, label)
	}
	issuer := rapid.SampledFrom(propertyIssuers).Draw(t, "issuer")
	d := drawn{issuer: issuer, signer: often("signer", issuer, "https://a", "https://b").(string)}
	d.algorithm = jose.RS256
	if d.signer == "https://b" {
		d.algorithm = jose.ES256
	}
	if often("named issuer", false, true).(bool) {
		d.issuer = "https://c"
	}
	d.secure = often("secure", true, false).(bool)
	d.values = often("values", 1, 0, 2).(int)
	d.scheme = often("scheme", "Bearer", "bearer", "Basic").(string)
	d.kid = often("kid", "k", "other", "").(string)
	d.audience = often("audience", []string{"x", "isthmus"}, []string{"x"}, []string{}).([]string)
	d.domain = often("domain", "cluster.local", "other.example").(string)
	d.ns = often("namespace", "shop", "bank", "Shop", "a.b", "").(string)
	d.sa = often("account", "cart", "vault", "Cart", "a.b", "").(string)
	d.spiffeSubject = rapid.Bool().Draw(t, "SPIFFE subject")
	d.lives = often("lives", time.Hour, -time.Hour, 10*time.Minute).(time.Duration)
	d.begins = often("begins", time.Duration(0), 30*time.Second, 10*time.Minute).(time.Duration)
	d.blocks = often("blocks", []string(nil), []string{}, []string{"10.0.0.0/8"}, []string{"x", "10.0.0.0/8"}, []string{"192.0.2.0/24", "fd00::/8"}).([]string)
	d.peer = often("peer", "10.1.2.3", "", "192.0.2.1", "fd00::1").(string)
	d.tampered = often("tampered", false, true).(bool)
	d.revokedName = often("revoked token", false, true).(bool)
	d.cert = often("certificate", "", cart, "spiffe://cluster.local/ns/bank/sa/vault", "spiffe://cluster.local/x", d.id()).(string)
	return d
}

func (d drawn) id() string { return fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", d.domain, d.ns, d.sa) }

func (d drawn) evidence(k keys) identity.Evidence {
	key := map[string]any{"https://a": k.rsa, "https://b": k.p256}[d.signer]
	sub := "system:serviceaccount:" + d.ns + ":" + d.sa
	if d.spiffeSubject {
		sub = d.id()
	}
	claims := map[string]any{
		"iss": d.issuer, "aud": d.audience, "sub": sub, "jti": "fine", "exp": time.Now().Add(d.lives).Unix(), "nbf": time.Now().Add(d.begins).Unix(),
	}
	if d.blocks != nil {
		claims["address"] = d.blocks
	}
	if d.revokedName {
		claims["jti"] = "revoked"
	}
	text := token(d.algorithm, d.kid, key, claims, nil)
	if d.tampered {
		parts := strings.Split(text, ".")
		parts[2] = strings.Repeat("A", len(parts[2]))
		text = strings.Join(parts, ".")
	}
	e := identity.Evidence{Secure: d.secure}
	e.Peer, _ = netip.ParseAddr(d.peer)
	for range d.values {
		e.Authorization = append(e.Authorization, d.scheme+" "+text)
	}
	if d.cert != "" {
		e.Chains = chains(certificate(d.cert))
	}
	return e
}

// valid holds for identities with names that Kubernetes takes, in the draws.
func (d drawn) valid() bool {
	return (d.ns == "shop" || d.ns == "bank") && (d.sa == "cart" || d.sa == "vault" || d.sa == "a.b")
}

// outcome returns the identity that the evidence proves, and whether it is valid.
func (d drawn) outcome() (id string, ok bool) {
	certOK := d.cert == "" || d.cert == cart || d.cert == "spiffe://cluster.local/ns/bank/sa/vault" ||
		// A certificate is read as it is: the names in it are those of its authority.
		d.cert == d.id() && (d.ns == "shop" || d.ns == "bank") && d.sa != ""
	if !certOK {
		return "", false
	}
	if d.values == 0 {
		if d.cert == "spiffe://cluster.local/ns/bank/sa/vault" { // is revoked
			return "", false
		}
		return d.cert, true
	}
	inDomain := d.domain == "cluster.local"
	proven := d.id()
	if !d.spiffeSubject { // such a subject names no trust domain
		inDomain, proven = true, fmt.Sprintf("spiffe://cluster.local/ns/%s/sa/%s", d.ns, d.sa)
	}
	for _, demand := range []bool{
		d.secure, d.values == 1, d.scheme != "Basic", d.issuer != "https://c", d.issuer == d.signer, d.kid == "k", !d.tampered,
		slices.Contains(d.audience, "isthmus"), inDomain, d.valid(), d.issuer != "https://b" || d.ns == "shop",
		d.lives > 0, d.begins <= time.Minute, d.allowed(), !d.revokedName,
		d.cert == "" || d.cert == proven, proven != "spiffe://cluster.local/ns/bank/sa/vault",
	} {
		if !demand {
			return "", false
		}
	}
	return proven, true
}

// allowed holds if the blocks of the token have the peer, written out for the draws.
func (d drawn) allowed() bool {
	switch {
	case d.blocks == nil:
		return true
	case len(d.blocks) == 1:
		return d.peer == "10.1.2.3"
	case len(d.blocks) == 2 && d.blocks[0] != "x":
		return d.peer == "192.0.2.1" || d.peer == "fd00::1"
	default:
		return false
	}
}

// Whatever the evidence, Prove returns the outcome of an evaluation that is slow and obvious.
func TestProveEqualsAnObviousEvaluation(t *testing.T) {
	t.Parallel()
	k := testKeys()
	a, b := issuerOf(t, jwk("k", k.rsa)), issuerOf(t, jwk("k", k.p256))
	a.Issuer, b.Issuer, b.Namespaces = "https://a", "https://b", []string{"shop"}
	dir := authority(t)
	revoke(t, dir, "spiffe://cluster.local/ns/bank/sa/vault", "revoked")
	v := verifier(t, identity.Config{JWT: []identity.Issuer{a, b}, Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}})
	var proven, rejected int
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		proof, err := v.Prove(t.Context(), d.evidence(k))
		id, ok := d.outcome()
		if ok != (err == nil) || proof.ID != id {
			t.Fatalf("%+v:\ngot %+v, %v\nwant %q, valid: %t", d, proof, err, id, ok)
		}
		if ok && id != "" {
			proven++
		}
		if !ok {
			rejected++
			return
		}
		if id != "" && fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", proof.TrustDomain, proof.Namespace, proof.Account) != id {
			t.Fatalf("the parts of %+v are not %s", proof, id)
		}
	})
	if proven == 0 || rejected == 0 {
		t.Errorf("%d proven, %d rejected", proven, rejected)
	}
}

// Foreign tokens cost no panic, prove nothing, and are in no error.
func FuzzProve(f *testing.F) {
	k := testKeys()
	v := verifier(f, identity.Config{JWT: []identity.Issuer{issuerOf(f, jwk("k", k.rsa))}})
	good := token(jose.RS256, "k", k.rsa, kubernetesClaims(), nil)
	f.Add("Bearer "+good, true)
	f.Add("Bearer "+strings.Replace(good, ".", "..", 1), true)
	f.Add("Bearer eyJhbGciOiJub25lIn0.e30.", true)
	f.Add("Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6ImsiLCJqd2siOnt9fQ.eyJpc3MiOiJ4In0.AA", true)
	f.Add("Basic x", false)
	f.Fuzz(func(t *testing.T, value string, secure bool) {
		proof, err := v.Prove(t.Context(), identity.Evidence{Authorization: []string{value}, Secure: secure})
		if err == nil && (!secure || proof.ID != cart) {
			t.Errorf("%q proves %+v", value, proof)
		}
		if err != nil {
			showsNoToken(t, attempt{evidence: identity.Evidence{Authorization: []string{value}}}, err)
		}
	})
}

// Foreign sets of keys cost no panic.
func FuzzKeys(f *testing.F) {
	k := testKeys()
	f.Add(keySet(jwk("a", k.rsa), jwk("b", k.p256), jwk("c", k.ed)))
	f.Add([]byte(`{"keys":[{"kty":"RSA","kid":"a","n":"AA","e":"AA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := write(t, t.TempDir()+"/keys.json", text)
		v := verifier(t, identity.Config{JWT: []identity.Issuer{{Issuer: kubernetes, KeysFile: path}}})
		if proof, err := v.Prove(t.Context(), by("k", k.p521)); err == nil {
			t.Errorf("proven by nothing: %+v", proof)
		}
	})
}
