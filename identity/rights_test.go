package identity_test

import (
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/identity"
)

// Namespaces belong to the own trust domain and its aliases. Identities of another trust domain are in
// the namespaces that the configuration gives them, or in none.
func TestRightsFollowTheTrustDomain(t *testing.T) {
	t.Parallel()
	v := verifier(t, identity.Config{
		Aliases: []string{"old.example"},
		TrustDomains: map[string]identity.TrustDomain{
			"partner.example": {Namespaces: map[string]string{"frontend": "shop", "control": "istio-system"}},
		},
	})
	for _, c := range []struct {
		domain, namespace string
		in                string
		everything        bool
	}{
		{"cluster.local", "shop", "shop", false},
		{"cluster.local", "istio-system", "istio-system", true},
		{"old.example", "shop", "shop", false},
		{"old.example", "istio-system", "istio-system", true},
		{"partner.example", "shop", "", false},
		{"partner.example", "istio-system", "", false},
		{"partner.example", "frontend", "shop", false},
		{"partner.example", "control", "istio-system", true},
		{"other.example", "shop", "", false},
		{"other.example", "istio-system", "", false},
	} {
		id := "spiffe://" + c.domain + "/ns/" + c.namespace + "/sa/a"
		proof := must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(id))}))
		r := admitted(t, v, proof)
		if r.ID() != id || r.Namespace() != c.in || (r.Everything() == nil) != c.everything || (r.Registers(nil) == nil) != c.everything {
			t.Errorf("%s: in %q, everything: %v, registers: %v", id, r.Namespace(), r.Everything(), r.Registers(nil))
		}
		for _, declared := range []string{"", c.namespace, c.in} {
			if in, err := r.In(declared); err != nil || in != c.in {
				t.Errorf("%s as %q: in %q, %v", id, declared, in, err)
			}
		}
		if in, err := r.In("bank"); err == nil {
			t.Errorf("%s as bank: in %q", id, in)
		}
		if err := r.Registers([]string{"spiffe://" + c.domain + "/ns/*/sa/a"}); err != nil {
			t.Error(err)
		}
		if r.Registers([]string{"spiffe://none.example/ns/*/sa/*"}) == nil {
			t.Errorf("%s is a registry, though the list does not have it", id)
		}
		for _, served := range [][]string{{"none.example"}, {"none.example", c.domain}} {
			if _, err := v.Admit(proof, identity.Demands{TrustDomains: served}, ""); (err == nil) != (len(served) == 2) {
				t.Errorf("%s at a listener of %q: %v", id, served, err)
			}
		}
		if r.Certified() != (c.domain == "cluster.local") {
			t.Errorf("%s may be sent a certificate: %t", id, r.Certified())
		}
	}
	if problems := v.Problems(); len(problems) > 0 {
		t.Errorf("the problems are %v", problems)
	}
	var none identity.Rights
	if in, err := none.In("shop"); err != nil || in != "shop" || none.Everything() != nil || none.Registers(nil) == nil {
		t.Errorf("without a proof: in %q, %v, registers: %v", in, err, none.Registers(nil))
	}
}

// Until the next release a certificate of a trust domain that the configuration says nothing about is
// that of a client of here, and a problem names it. A token never was.
func TestRightsOfOtherTrustDomainsEndWithNotice(t *testing.T) {
	t.Parallel()
	const region = "spiffe://region.example/ns/istio-system/sa/istiod"
	k := testKeys()
	issuer := issuerOf(t, jwk("k", k.p256))
	issuer.TrustDomain = "region.example"
	for name, c := range map[string]struct {
		domains map[string]identity.TrustDomain
		lenient bool
	}{"nothing said": {nil, true}, "none": {map[string]identity.TrustDomain{}, false}} {
		v := verifier(t, identity.Config{JWT: []identity.Issuer{issuer}, TrustDomains: c.domains})
		claims := with(kubernetesClaims(), "sub", "system:serviceaccount:istio-system:istiod")
		byToken := admitted(t, v, must(v.Prove(t.Context(), bearer(token("ES256", "k", k.p256, claims, nil)))))
		if byToken.ID() != region || byToken.Everything() == nil || byToken.Namespace() != "" || len(v.Problems()) > 0 {
			t.Errorf("%s: a token gives %+v, with problems %v", name, byToken, v.Problems())
		}
		byCertificate := admitted(t, v, must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(region))})))
		if (byCertificate.Everything() == nil) != c.lenient {
			t.Errorf("%s: a certificate gives %v", name, byCertificate.Everything())
		}
		problems := v.Problems()
		if len(problems) > 0 != c.lenient || c.lenient && !strings.Contains(problems[0].String()+problems[0].Next, `"region.example"`) ||
			c.lenient && (!strings.Contains(problems[0].Reason, region) || !strings.Contains(problems[0].Next, "identity.trustDomains")) {
			t.Errorf("%s: the problems are %v", name, problems)
		}
	}
}

func TestIssuersThatCouldBeRootAreWarnedOf(t *testing.T) {
	t.Parallel()
	open := func(domain string, namespaces ...string) identity.Issuer {
		return identity.Issuer{Issuer: "https://a", TrustDomain: domain, Namespaces: namespaces}
	}
	domains := map[string]identity.TrustDomain{
		"partner.example": {Namespaces: map[string]string{"control": "istio-system"}}, "guest.example": {Namespaces: map[string]string{"a": "shop"}},
	}
	for name, c := range map[string]struct {
		issuer identity.Issuer
		warned bool
	}{
		"own": {open(""), true}, "named": {open("cluster.local"), true}, "alias": {open("old.example"), true},
		"limited": {open("", "shop"), false}, "on purpose": {open("", "istio-system"), false},
		"foreign": {open("other.example"), true}, "given the root": {open("partner.example"), true}, "given another": {open("guest.example"), false},
	} {
		config := identity.Config{Aliases: []string{"old.example"}, TrustDomains: domains, JWT: []identity.Issuer{c.issuer}}
		warnings := config.Warnings("istio-system")
		if len(warnings) > 0 != c.warned || c.warned && !strings.HasPrefix(warnings[0], "identity.jwt[0]") {
			t.Errorf("%s: %q", name, warnings)
		}
	}
}
