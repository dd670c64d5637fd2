package identity_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/isthmus-mesh/isthmus/identity"
)

// attempt is evidence, and a part of the error that it has to meet; empty if it proves cart.
type attempt struct {
	name     string
	evidence identity.Evidence
	problem  string
}

func try(t *testing.T, v *identity.Verifier, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		proof, err := v.Prove(t.Context(), a.evidence)
		if a.problem == "" {
			if err != nil || proof.ID != cart || proof.Namespace != "shop" || proof.Account != "cart" {
				t.Errorf("%s: %+v, %v", a.name, proof, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), a.problem) || proof != (identity.Proof{}) {
			t.Errorf("%s: %+v, %v; want an error with %q", a.name, proof, err, a.problem)
		}
		if err != nil {
			showsNoToken(t, a, err)
		}
	}
}

// showsNoToken fails if the error contains a part of the text of the token.
func showsNoToken(t *testing.T, a attempt, err error) {
	t.Helper()
	for _, value := range a.evidence.Authorization {
		for part := range strings.SplitSeq(strings.TrimPrefix(value, "Bearer "), ".") {
			if len(part) > 20 && strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error has the text of the token: %v", a.name, err)
			}
		}
	}
}

func TestTokenProvesItsAccount(t *testing.T) {
	t.Parallel()
	k := testKeys()
	claims := kubernetesClaims()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.rsa))}})
	if !v.TakesTokens() {
		t.Error("tokens are not taken")
	}
	proof, err := v.Prove(t.Context(), bearer(token(jose.RS256, "k", k.rsa, claims, nil)))
	want := identity.Proof{
		ID: cart, TrustDomain: "cluster.local", Namespace: "shop", Account: "cart", Expires: time.Unix(claims["exp"].(int64), 0),
		By: identity.ByToken, Issuer: kubernetes, Token: "one",
	}
	if err != nil || proof != want {
		t.Errorf("got %+v, %v, want %+v", proof, err, want)
	}
}

func TestEvidenceOfTokens(t *testing.T) {
	t.Parallel()
	k := testKeys()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.rsa))}})
	good := token(jose.RS256, "k", k.rsa, kubernetesClaims(), nil)
	value := func(values ...string) identity.Evidence {
		return identity.Evidence{Authorization: values, Secure: true}
	}
	both := func(uri string) identity.Evidence {
		e := bearer(good)
		e.Chains = chains(certificate(uri))
		return e
	}
	plaintext := bearer(good)
	plaintext.Secure = false
	try(t, v, []attempt{
		{"a token", bearer(good), ""},
		{"the scheme in lower case", value("bearer " + good), ""},
		{"over plaintext", plaintext, "over TLS only"},
		{"over plaintext beside nothing else", identity.Evidence{Authorization: []string{"Basic x"}}, "over TLS only"},
		{"two values", value("Bearer "+good, "Bearer "+good), "2 values"},
		{"another scheme", value("Basic " + good), "not \"Bearer TOKEN\""},
		{"no scheme", value(good), "not \"Bearer TOKEN\""},
		{"an empty value", value(""), "not \"Bearer TOKEN\""},
		{"an empty token", value("Bearer "), "not \"Bearer TOKEN\""},
		{"two tokens in one value", value("Bearer " + good + " " + good), "not a signed JSON Web Token"},
		{"two tokens with a comma", value("Bearer " + good + ",Bearer " + good), "not a signed JSON Web Token"},
		{"16 KiB", value("Bearer " + strings.Repeat("a", 16<<10-7)), "not a signed JSON Web Token"},
		{"more than 16 KiB", value("Bearer " + strings.Repeat("a", 16<<10-6)), "larger than 16384 bytes"},
		{"no token", value("Bearer a.b"), "not a signed JSON Web Token"},
		{"JSON serialization", value(`Bearer {"payload":"e30","signatures":[]}`), "not a signed JSON Web Token"},
		{"an encrypted token", value("Bearer a.b.c.d.e"), "not a signed JSON Web Token"},
		{"with the certificate of the account", both(cart), ""},
		{"with another certificate", both("spiffe://cluster.local/ns/shop/sa/other"), "both have to be of one identity"},
		{"with the certificate of another trust domain", both("spiffe://other/ns/shop/sa/cart"), "both have to be of one identity"},
		{"with an invalid certificate", both("spiffe://cluster.local/cart"), "client certificate"},
	})
	// A bad token beside a good certificate is not left out.
	bad := bearer(good + "x")
	bad.Chains = chains(certificate(cart))
	try(t, v, []attempt{{"a bad token beside a good certificate", bad, "signature is not that of the key"}})
	if proof, err := v.Prove(t.Context(), both(cart)); err != nil || proof.By != identity.ByToken || proof.Expires.IsZero() {
		t.Errorf("with both, the token has to hold as well: %+v, %v", proof, err)
	}
}

func TestAlgorithmsAreAFixedList(t *testing.T) {
	t.Parallel()
	k := testKeys()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("rsa", k.rsa), jwk("256", k.p256), jwk("384", k.p384), jwk("521", k.p521), jwk("ed", k.ed))}})
	claims := kubernetesClaims()
	sign := func(algorithm jose.SignatureAlgorithm, id string, key any) identity.Evidence {
		return bearer(token(algorithm, id, key, claims, nil))
	}
	payload := base64.RawURLEncoding.EncodeToString(must(json.Marshal(claims)))
	unsigned := func(header string) identity.Evidence {
		return bearer(base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + payload + ".")
	}
	public := must(x509.MarshalPKIXPublicKey(k.rsa.Public()))
	spki := must(x509.MarshalPKIXPublicKey(k.p256.Public()))
	try(t, v, []attempt{
		{"RS256", sign(jose.RS256, "rsa", k.rsa), ""},
		{"RS384", sign(jose.RS384, "rsa", k.rsa), ""},
		{"RS512", sign(jose.RS512, "rsa", k.rsa), ""},
		{"PS256", sign(jose.PS256, "rsa", k.rsa), ""},
		{"PS384", sign(jose.PS384, "rsa", k.rsa), ""},
		{"PS512", sign(jose.PS512, "rsa", k.rsa), ""},
		{"ES256", sign(jose.ES256, "256", k.p256), ""},
		{"ES384", sign(jose.ES384, "384", k.p384), ""},
		{"ES512", sign(jose.ES512, "521", k.p521), ""},
		{"EdDSA", sign(jose.EdDSA, "ed", k.ed), ""},
		{"none", unsigned(`{"alg":"none","kid":"rsa"}`), `algorithm "none" is not accepted`},
		{"None", unsigned(`{"alg":"None","kid":"rsa"}`), `algorithm "None" is not accepted`},
		{"no algorithm", unsigned(`{"kid":"rsa"}`), `algorithm "" is not accepted`},
		{"a known algorithm without signature", unsigned(`{"alg":"RS256","kid":"rsa"}`), "signature is not that of the key"},
		{"HS256 with a public key", sign(jose.HS256, "rsa", public), `algorithm "HS256" is not accepted`},
		{"HS512 with a public key", sign(jose.HS512, "256", append(spki, spki...)), `algorithm "HS512" is not accepted`},
		{"the algorithm of another type of key", sign(jose.ES256, "rsa", k.p256), "another type or size than ES256 needs"},
		{"the algorithm of another curve", sign(jose.ES256, "384", k.p256), "another type or size than ES256 needs"},
		{"the signature of another key", sign(jose.RS256, "rsa", k.otherRSA), "signature is not that of the key"},
		{"no key id", sign(jose.RS256, "", k.rsa), "no key id"},
		{"an unknown key id", sign(jose.RS256, "other", k.rsa), `no usable key with the id "other"`},
	})
}

func TestHeadersOfATokenNameNoKeys(t *testing.T) {
	t.Parallel()
	k := testKeys()
	asked := make(chan string, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer server.Close()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.rsa))}})
	forged := func(name jose.HeaderKey, value any) identity.Evidence {
		return bearer(token(jose.RS256, "k", k.otherRSA, kubernetesClaims(), map[jose.HeaderKey]any{name: value}))
	}
	honest := func(name jose.HeaderKey, value any) identity.Evidence {
		return bearer(token(jose.RS256, "k", k.rsa, kubernetesClaims(), map[jose.HeaderKey]any{name: value}))
	}
	own := jwk("k", k.otherRSA)
	const wrong = "signature is not that of the key"
	try(t, v, []attempt{
		{"jku", forged("jku", server.URL+"/jku"), wrong},
		{"x5u", forged("x5u", server.URL+"/x5u"), wrong},
		{"jwk", forged("jwk", own), wrong},
		{"x5c", forged("x5c", []string{base64.StdEncoding.EncodeToString(server.Certificate().Raw)}), wrong},
		{"jku of an honest token", honest("jku", server.URL+"/jku"), ""},
		{"x5u of an honest token", honest("x5u", server.URL+"/x5u"), ""},
		{"jwk of an honest token", honest("jwk", own), ""},
		{"an extension", honest("crit", []string{"b64"}), "demands an extension"},
		{"an unknown extension", honest("crit", []string{"exp"}), "demands an extension"},
	})
	if len(asked) > 0 {
		t.Errorf("the token led to a request of %s", <-asked)
	}
}

func TestKeysFitTheirUse(t *testing.T) {
	t.Parallel()
	k := testKeys()
	change := func(id string, f func(*jose.JSONWebKey)) jose.JSONWebKey {
		key := jwk(id, k.rsa)
		f(&key)
		return key
	}
	set := keySet(
		change("encryption", func(k *jose.JSONWebKey) { k.Use = "enc" }),
		change("no use", func(k *jose.JSONWebKey) { k.Use = "" }),
		change("RS512 only", func(k *jose.JSONWebKey) { k.Algorithm = "RS512" }),
		change("RS256 only", func(k *jose.JSONWebKey) { k.Algorithm = "RS256" }),
		change("for encryption", func(k *jose.JSONWebKey) { k.Algorithm = "RSA-OAEP" }),
		jose.JSONWebKey{KeyID: "private", Key: k.rsa, Use: "sig"},
		jose.JSONWebKey{KeyID: "symmetric", Key: []byte("0123456789abcdef0123456789abcdef"), Use: "sig"},
		jwk("weak", k.weakRSA), jwk("twice", k.rsa), jwk("twice", k.otherRSA), jwk("same twice", k.rsa), jwk("same twice", k.rsa),
	)
	var raw map[string][]json.RawMessage
	if err := json.Unmarshal(set, &raw); err != nil {
		t.Fatal(err)
	}
	withOps := func(id, operation string) json.RawMessage {
		text := string(must(json.Marshal(jwk(id, k.rsa))))
		return json.RawMessage(strings.TrimSuffix(text, "}") + `,"key_ops":["` + operation + `"]}`)
	}
	raw["keys"] = append(raw["keys"], withOps("verifies", "verify"), withOps("encrypts", "encrypt"),
		json.RawMessage(`{"kty":"new","kid":"unknown type"}`), json.RawMessage(`{"kty":"RSA","kid":"no modulus"}`), json.RawMessage(`7`), json.RawMessage(`null`))
	path := write(t, t.TempDir()+"/keys.json", must(json.Marshal(raw)))
	v := verifier(t, identity.Config{JWT: []identity.Issuer{{Issuer: kubernetes, KeysFile: path}}})
	sign := func(id string, key *rsa.PrivateKey) identity.Evidence {
		return bearer(token(jose.RS256, id, key, kubernetesClaims(), nil))
	}
	const missing = "no usable key with the id"
	try(t, v, []attempt{
		{"no use", sign("no use", k.rsa), ""},
		{"RS256 only", sign("RS256 only", k.rsa), ""},
		{"verifies", sign("verifies", k.rsa), ""},
		{"encryption", sign("encryption", k.rsa), missing},
		{"for encryption", sign("for encryption", k.rsa), missing},
		{"RS512 only", sign("RS512 only", k.rsa), `the key is for "RS512"`},
		{"encrypts", sign("encrypts", k.rsa), missing},
		{"private", sign("private", k.rsa), missing},
		{"symmetric", sign("symmetric", k.rsa), missing},
		{"weak", sign("weak", k.weakRSA), missing},
		{"twice", sign("twice", k.rsa), missing},
		{"the other of twice", sign("twice", k.otherRSA), missing},
		{"same twice", sign("same twice", k.rsa), missing},
		{"unknown type", sign("unknown type", k.rsa), missing},
		{"no modulus", sign("no modulus", k.rsa), missing},
	})
	if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), `have the id "twice"`) {
		t.Errorf("problems: %q", problems)
	}
}

func TestIssuersKeepToTheirOwnKeys(t *testing.T) {
	t.Parallel()
	k := testKeys()
	one, other := issuerOf(t, jwk("one", k.rsa), jwk("both", k.rsa)), issuerOf(t, jwk("other", k.otherRSA), jwk("both", k.otherRSA))
	other.Issuer, other.TrustDomain, other.Namespaces = "https://other.example", "other.example", []string{"shop"}
	other.Audience = "other audience"
	v := verifier(t, identity.Config{JWT: []identity.Issuer{one, other}})
	sign := func(id string, key any, issuer any, audience any) identity.Evidence {
		return bearer(token(jose.RS256, id, key, with(with(kubernetesClaims(), "iss", issuer), "aud", audience), nil))
	}
	try(t, v, []attempt{
		{"its own", sign("one", k.rsa, kubernetes, "isthmus"), ""},
		{"another issuer's key id", sign("other", k.otherRSA, kubernetes, "isthmus"), `no usable key with the id "other"`},
		{"another issuer's key of the same id", sign("both", k.otherRSA, kubernetes, "isthmus"), "signature is not that of the key"},
		{"another issuer's audience", sign("one", k.rsa, kubernetes, "other audience"), "another audience"},
		{"an issuer with a slash more", sign("one", k.rsa, kubernetes+"/", "isthmus"), "is not configured"},
		{"an issuer in other case", sign("one", k.rsa, strings.ToUpper(kubernetes), "isthmus"), "is not configured"},
		{"no issuer", sign("one", k.rsa, nil, "isthmus"), "claim iss is missing"},
		{"an empty issuer", sign("one", k.rsa, "", "isthmus"), "claim iss is missing"},
		{"an issuer that is no string", sign("one", k.rsa, []string{kubernetes}, "isthmus"), "claim iss is not a string"},
	})
	proof, err := v.Prove(t.Context(), sign("other", k.otherRSA, "https://other.example", "other audience"))
	if err != nil || proof.ID != "spiffe://other.example/ns/shop/sa/cart" {
		t.Errorf("%+v, %v", proof, err)
	}
	claims := with(with(with(kubernetesClaims(), "iss", "https://other.example"), "aud", "other audience"), "sub", "system:serviceaccount:bank:vault")
	try(t, v, []attempt{
		{"a namespace it may not vouch for", bearer(token(jose.RS256, "other", k.otherRSA, claims, nil)), `may not vouch for the namespace "bank"`},
		{"the trust domain of the other", bearer(token(jose.RS256, "other", k.otherRSA, with(claims, "sub", cart), nil)), `vouches for the trust domain "other.example"`},
	})
}
