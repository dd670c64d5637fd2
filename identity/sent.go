package identity

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
)

// Sender is an authority with certificates for clients.
type Sender interface {
	// Sent reports whether a certificate with these verified chains may be one of them.
	Sent(chains [][]*x509.Certificate) bool
}

// sent is what is known of the certificates that Isthmus sends to clients.
type sent struct {
	by       Sender // nil if none are sent
	events   *events.Clients
	rejected sightings // by identity
}

// Disown makes the certificates of a sender no proof of their own. Rejected takes an event for each
// client that shows one. It is called before the first proof.
func (v *Verifier) Disown(by Sender, rejected *events.Clients) {
	v.sent.by, v.sent.events = by, rejected
}

func (v *Verifier) sends(chains [][]*x509.Certificate) bool {
	return v != nil && v.sent.by != nil && v.sent.by.Sent(chains)
}

// reject returns why a certificate that Isthmus has sent is no proof, and records the client.
func (v *Verifier) reject(p Proof, from string) error {
	if v.sent.rejected.add(p.ID, p.ID, from, recent) {
		v.sent.events.Add(events.Rejected, from, fmt.Sprintf("of %s, from %s, and is rejected", p.ID, from))
	}
	return fmt.Errorf("the client shows a certificate of %s that was sent to a client for its calls, and is no proof here; "+
		"connect with a token or with a certificate of another authority, or set tls.acceptOwnLeaves of an output to let it read", p.ID)
}

// recent is for how long a rejection is a problem, and has no other event.
const recent = time.Hour

// returnedCertificates names the accounts with certificates that came back as proofs.
func (v *Verifier) returnedCertificates() (list []Problem) {
	for id, one := range v.sent.rejected.all() {
		if time.Since(one.at) > recent {
			continue
		}
		list = append(list, Problem{
			About: "certificates of clients",
			Reason: fmt.Sprintf("%s connects with a certificate that Isthmus itself sent to a client, and is rejected (%d streams since the start, the last at %s from %s)",
				id, one.streams, one.at.UTC().Format(time.RFC3339), one.from),
			Next: "if it is your workload, give it a token or a certificate of another authority, or let such clients read by tls.acceptOwnLeaves of the output; if not, the key was stolen: revoke the account",
		})
	}
	return list
}
