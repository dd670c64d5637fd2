package identity

import (
	"context"
	"crypto/x509"
	"net/netip"
	"time"
)

// The ways to prove an identity, as in [Proof].
const (
	ByCertificate = "certificate"
	ByToken       = "token"
)

// Proof is the proven identity of a client. The zero Proof proves nothing.
type Proof struct {
	ID          string // spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT
	TrustDomain string
	Namespace   string
	Account     string
	// Expires is the end of a token. It is zero for a certificate, which its connection
	// watches.
	Expires time.Time
	By      string // [ByCertificate] or [ByToken]; with both, ByToken
	// Sent means that the proof is a certificate that Isthmus itself sends to clients. It follows
	// from an earlier proof, which may be over.
	Sent   bool
	Issuer string // of the token
	Token  string // the claim jti of the token; may be empty
}

// Evidence is the proofs of identity that a stream brings.
type Evidence struct {
	// Chains are the verified chains of the client certificate, from it to authorities; none
	// without a certificate.
	Chains        [][]*x509.Certificate
	Authorization []string   // the values of that header
	Peer          netip.Addr // the address of the client; invalid on a unix socket
	Secure        bool       // the stream came over TLS
}

// prover is one way to prove an identity: a row of the table of proofs.
type prover interface {
	// prove returns the proven identity; the zero Proof if there is no evidence of its
	// kind. Invalid evidence is an error.
	prove(ctx context.Context, e Evidence) (Proof, error)
}

// provers is the table of proofs. Tokens without an issuer are no evidence.
func (v *Verifier) provers() []prover {
	table := []prover{certificates{v}}
	if v.TakesTokens() {
		table = append(table, tokens(v.issuers))
	}
	return table
}
