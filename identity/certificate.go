package identity

import (
	"context"
	"crypto/x509"
	"fmt"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// certificates prove an identity by the one SPIFFE URI of the certificate, which follows the rules
// of SPIFFE for workloads. Its common name
// proves nothing: it is free text, without a namespace or trust domain.
type certificates struct{ of *Verifier }

var _ prover = certificates{}

func (c certificates) prove(_ context.Context, e Evidence) (Proof, error) {
	if len(e.Chains) == 0 {
		return Proof{}, nil
	}
	id, namespace, err := spiffe.Leaf(e.Chains[0][0], x509.ExtKeyUsageClientAuth)
	if err != nil {
		return Proof{}, fmt.Errorf("client certificate: %w", err)
	}
	_, account, err := spiffe.Parts(id)
	return Proof{ID: id.String(), TrustDomain: id.TrustDomain().Name(), Namespace: namespace, Account: account, By: ByCertificate, Sent: c.of.sends(e.Chains)}, err
}
