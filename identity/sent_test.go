package identity_test

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/events"
)

// sender has sent certificates with some identities.
type sender func(id string) bool

func (s sender) Sent(chains [][]*x509.Certificate) bool { return s(chains[0][0].URIs[0].String()) }

// admitted returns the rights at a listener without demands.
func admitted(t *testing.T, v *identity.Verifier, p identity.Proof) identity.Rights {
	t.Helper()
	r, err := v.Admit(p, identity.Demands{}, "10.0.0.9:4000")
	if err != nil {
		t.Error(err)
	}
	return r
}

// A certificate that Isthmus sends is a proof only where a listener takes it, and yields no other
// certificate there. A token beside it counts by itself.
func TestSentCertificateIsNoProofOfItsOwn(t *testing.T) {
	t.Parallel()
	const other = "spiffe://cluster.local/ns/shop/sa/other"
	k := testKeys()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}})
	log := events.New()
	v.Disown(sender(func(id string) bool { return id == cart }), log.Of(""))

	sent := must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(cart))}))
	if _, err := v.Admit(sent, identity.Demands{}, "10.0.0.9:4000"); err == nil || !strings.Contains(err.Error(), cart) || !strings.Contains(err.Error(), "tls.acceptOwnLeaves") {
		t.Errorf("it is admitted: %v", err)
	}
	if r, err := v.Admit(sent, identity.Demands{OwnLeaves: true}, ""); err != nil || r.ID() != cart || r.Namespace() != "shop" || r.Certified() {
		t.Errorf("where it may read: %+v, %v", r, err)
	}
	foreign := must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(other))}))
	if r := admitted(t, v, foreign); !r.Certified() {
		t.Errorf("another certificate: %+v", r)
	}
	with := bearer(token("ES256", "k", k.p256, kubernetesClaims(), nil))
	with.Chains = chains(certificate(cart))
	if r := admitted(t, v, must(v.Prove(t.Context(), with))); !r.Certified() {
		t.Errorf("beside a token: %+v", r)
	}
	_, _ = v.Admit(sent, identity.Demands{}, "10.0.0.9:4000")
	if list, _, _ := log.After(0); len(list) != 1 || !strings.Contains(list[0].Text, cart) || list[0].Client != "10.0.0.9:4000" {
		t.Errorf("the events are %+v", list)
	}
}

// The status names the accounts with certificates that came back, for a while, and a bounded number
// of them: the newest.
func TestReturnedCertificatesAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := verifier(t, identity.Config{})
		v.Disown(sender(func(string) bool { return true }), nil)
		for i := range 30 {
			id := fmt.Sprintf("spiffe://cluster.local/ns/shop/sa/a%02d", i)
			for range 2 {
				_, _ = v.Admit(must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(id))})), identity.Demands{}, "10.0.0.9:4000")
			}
			time.Sleep(time.Second)
		}
		problems := v.Problems()
		if len(problems) != 20 || !strings.Contains(problems[19].Reason, "/sa/a29 ") ||
			!strings.Contains(problems[19].Reason, "2 streams") || !strings.Contains(problems[19].Reason, "10.0.0.9:4000") {
			t.Errorf("%d problems: %v", len(problems), problems)
		}
		time.Sleep(time.Hour)
		if problems := v.Problems(); len(problems) > 0 {
			t.Errorf("later: %v", problems)
		}
	})
}
