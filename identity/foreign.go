package identity

import (
	"fmt"
	"time"
)

// lenient reports whether a certificate of another trust domain still has the rights of this one:
// until the next release, in a configuration without a setting of other trust domains.
func (v *Verifier) lenient(p Proof) bool {
	return v.config.TrustDomains == nil && p.By == ByCertificate
}

// foreigners names the trust domains with lenient rights.
func (v *Verifier) foreigners() (list []Problem) {
	for domain, one := range v.foreign.all() {
		list = append(list, Problem{
			About: fmt.Sprintf("trust domain %q", domain),
			Reason: fmt.Sprintf("its clients are taken for clients of the same namespaces of %s (%d streams since the start, the last at %s of %s); from the next release on they see only what is exported to everybody",
				v.config.Domain(), one.streams, one.at.UTC().Format(time.RFC3339), one.id),
			Next: "set identity.trustDomain to the name of this mesh's trust domain, and list other names of it in identity.trustDomainAliases, or give namespaces to that trust domain in identity.trustDomains; identity.trustDomains: {} applies the new rule at once",
		})
	}
	return list
}
