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
type certificates struct{}

var _ prover = certificates{}

func (certificates) prove(_ context.Context, e Evidence) (Proof, error) {
	if e.Certificate == nil {
		return Proof{}, nil
	}
	id, namespace, err := spiffe.Leaf(e.Certificate, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return Proof{}, fmt.Errorf("client certificate: %w", err)
	}
	_, account, err := spiffe.Parts(id)
	return Proof{ID: id.String(), TrustDomain: id.TrustDomain().Name(), Namespace: namespace, Account: account, By: ByCertificate}, err
}
