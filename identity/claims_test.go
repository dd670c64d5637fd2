package identity_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/isthmus-mesh/isthmus/identity"
)

func TestClaimsOfATokenAreChecked(t *testing.T) {
	t.Parallel()
	k := testKeys()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}})
	claim := func(name string, value any) identity.Evidence {
		return bearer(token(jose.ES256, "k", k.p256, with(kubernetesClaims(), name, value), nil))
	}
	raw := func(change func(text string) string) identity.Evidence {
		return bearer(signed(jose.ES256, "k", k.p256, []byte(change(string(must(json.Marshal(kubernetesClaims()))))), nil))
	}
	more := func(text string) identity.Evidence {
		return raw(func(claims string) string { return strings.TrimSuffix(claims, "}") + "," + text + "}" })
	}
	const badTime, badSub, badName = "not a time in seconds", "not an identity", "the namespace"
	try(t, v, []attempt{
		{"the audience alone", claim("aud", "isthmus"), ""},
		{"among other audiences", claim("aud", []string{"a", "isthmus"}), ""},
		{"no audience", claim("aud", nil), "claim aud is missing"},
		{"another audience", claim("aud", "istio-ca"), "another audience"},
		{"an audience that contains ours", claim("aud", "isthmus2"), "another audience"},
		{"ours in other case", claim("aud", "Isthmus"), "another audience"},
		{"no audiences", claim("aud", []string{}), "another audience"},
		{"null for audience", more(`"x":1,"Aud":"isthmus"`), ""},
		{"an audience that is no string", claim("aud", 1), "not a string or a list"},
		{"a null audience", claim("aud", json.RawMessage("null")), "not a string or a list"},
		{"audiences that are no strings", claim("aud", []any{"isthmus", 1}), "not a string or a list"},
		{"no end", claim("exp", nil), "claim exp is missing"},
		{"a null end", claim("exp", json.RawMessage("null")), badTime},
		{"an end that is a string", claim("exp", "2999999999"), badTime},
		{"an end without bounds", claim("exp", json.Number("1e300")), badTime},
		{"an end before 1970", claim("exp", -1), badTime},
		{"an end in 9999", claim("exp", 253402300799), ""},
		{"an end beyond 9999", claim("exp", math.MaxInt64), badTime},
		{"a fraction", claim("exp", float64(time.Now().Unix())+600.5), ""},
		{"a beginning that is a string", claim("nbf", "0"), badTime},
		{"a null beginning", claim("nbf", json.RawMessage("null")), badTime},
		{"no beginning", claim("nbf", nil), ""},
		{"no time of issue", claim("iat", nil), ""},
		{"no subject", claim("sub", nil), "claim sub is missing"},
		{"a subject that is no string", claim("sub", []string{"a"}), "claim sub is not a string"},
		{"a user", claim("sub", "system:node:a"), badSub},
		{"no account", claim("sub", "system:serviceaccount:shop"), "the account"},
		{"an account with a colon", claim("sub", "system:serviceaccount:shop:cart:x"), "the account"},
		{"an empty account", claim("sub", "system:serviceaccount:shop:"), "the account"},
		{"an account with a slash", claim("sub", "system:serviceaccount:shop:a/b"), "the account"},
		{"an account that goes up", claim("sub", "system:serviceaccount:shop:.."), "the account"},
		{"a namespace with a slash", claim("sub", "system:serviceaccount:shop/sa/x:cart"), badName},
		{"a namespace in upper case", claim("sub", "system:serviceaccount:Shop:cart"), badName},
		{"an empty namespace", claim("sub", "system:serviceaccount::cart"), badName},
		{"the namespace *", claim("sub", "system:serviceaccount:*:cart"), badName},
		{"a SPIFFE identity", claim("sub", cart), ""},
		{"a SPIFFE identity of another trust domain", claim("sub", "spiffe://other/ns/shop/sa/cart"), "vouches for the trust domain"},
		{"a SPIFFE identity of another form", claim("sub", "spiffe://cluster.local/shop/cart"), "not of the form"},
		{"no id", claim("jti", nil), ""},
		{"an id that is no string", claim("jti", 1), "claim jti is not a string"},
		{"names in other case change nothing", more(`"SUB":"system:serviceaccount:bank:vault","Exp":1`), ""},
		{"a claim twice", more(`"sub":"system:serviceaccount:bank:vault"`), "each name once"},
		{"a list of claims", raw(func(string) string { return "[]" }), "each name once"},
		{"no JSON", raw(func(string) string { return "{" }), "each name once"},
		{"null", raw(func(string) string { return "null" }), "claim iss is missing"},
		{"deep", more(`"x":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000)), ""},
	})
}

// Clocks differ by up to a minute. The end of a token is exact.
func TestTimesOfATokenAreChecked(t *testing.T) {
	k := testKeys()
	synctest.Test(t, func(t *testing.T) {
		v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}})
		at := func(name string, from time.Duration) identity.Evidence {
			return bearer(token(jose.ES256, "k", k.p256, with(kubernetesClaims(), name, time.Now().Add(from).Unix()), nil))
		}
		try(t, v, []attempt{
			{"ends in a second", at("exp", time.Second), ""},
			{"ends now", at("exp", 0), "it expired at 2000-01-01T00:00:00Z"},
			{"ended", at("exp", -time.Second), "it expired at 1999-12-31T23:59:59Z"},
			{"begins within the leeway", at("nbf", time.Minute), ""},
			{"begins later", at("nbf", time.Minute+time.Second), "not valid before 2000-01-01T00:01:01Z (nbf)"},
			{"was issued within the leeway", at("iat", time.Minute), ""},
			{"will be issued", at("iat", time.Minute+time.Second), "(iat)"},
			{"lives for ten years", at("exp", 10*365*24*time.Hour), ""},
		})
	})
}

func TestAddressesNarrowATokensUse(t *testing.T) {
	t.Parallel()
	k := testKeys()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}})
	from := func(claim any, peer string) identity.Evidence {
		e := bearer(token(jose.ES256, "k", k.p256, with(kubernetesClaims(), "address", claim), nil))
		e.Peer, _ = netip.ParseAddr(peer)
		return e
	}
	const not, form = "may not be used from the address", "not a block such as"
	try(t, v, []attempt{
		{"no claim, from a socket", from(nil, ""), ""},
		{"its address", from("10.1.2.3/32", "10.1.2.3"), ""},
		{"its block", from("10.0.0.0/8", "10.1.2.3"), ""},
		{"one of its blocks", from([]string{"192.0.2.0/24", "10.0.0.0/8"}, "10.1.2.3"), ""},
		{"its address in IPv6 form", from("10.0.0.0/8", "::ffff:10.1.2.3"), ""},
		{"IPv6", from("2001:db8::/32", "2001:db8::1"), ""},
		{"IPv6 with a zone", from("fe80::/10", "fe80::1%eth0"), ""},
		{"another address", from("10.1.2.3/32", "10.1.2.4"), not},
		{"outside of its blocks", from([]string{"192.0.2.0/24", "10.0.0.0/8"}, "11.0.0.1"), not},
		{"no blocks", from([]string{}, "10.1.2.3"), not},
		{"a socket", from("0.0.0.0/0", ""), "this connection has none"},
		{"no block", from("10.1.2.3", "10.1.2.3"), form},
		{"no block among blocks", from([]string{"10.0.0.0/8", "x"}, "10.1.2.3"), form},
		{"an empty claim", from("", "10.1.2.3"), form},
		{"a postal address", from(map[string]string{"country": "DE"}, "10.1.2.3"), "not a string or a list"},
		{"null", from(json.RawMessage("null"), "10.1.2.3"), "not a string or a list"},
	})
}

func TestClaimsOfAnyIssuerHaveTheIdentity(t *testing.T) {
	t.Parallel()
	k := testKeys()
	issuer := issuerOf(t, jwk("k", k.p256))
	issuer.Claims = identity.Claims{Namespace: "team", Account: "app"}
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuer}})
	claims := func(team, app any) identity.Evidence {
		all := with(with(with(kubernetesClaims(), "team", team), "app", app), "sub", "system:serviceaccount:bank:vault")
		return bearer(token(jose.ES256, "k", k.p256, all, nil))
	}
	try(t, v, []attempt{
		{"both", claims("shop", "cart"), ""},
		{"no namespace", claims(nil, "cart"), "claim team is missing"},
		{"no account", claims("shop", nil), "claim app is missing"},
		{"an empty account", claims("shop", ""), "claim app is missing"},
		{"a list", claims([]string{"shop"}, "cart"), "claim team is not a string"},
		{"an invalid namespace", claims("a.b", "cart"), "the namespace"},
		{"an invalid account", claims("shop", "Cart"), "the account"},
	})
}
