package identity

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// lenient reports whether a certificate of another trust domain still has the rights of this one:
// until the next release, in a configuration that says nothing of other trust domains.
func (v *Verifier) lenient(p Proof) bool {
	return v.config.TrustDomains == nil && p.By == ByCertificate
}

// foreigners are the last clients with lenient rights, by trust domain.
type foreigners struct {
	mu   sync.Mutex
	last map[string]foreigner
}

type foreigner struct {
	id      string
	streams int // since the start
	at      time.Time
}

// mostForeign bounds the trust domains that are named. Each is one of an authority of clients.
const mostForeign = 20

// add records a stream of a client.
func (f *foreigners) add(p Proof) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[string]foreigner{}
	}
	was, known := f.last[p.TrustDomain]
	if known || len(f.last) < mostForeign {
		f.last[p.TrustDomain] = foreigner{p.ID, was.streams + 1, time.Now()}
	}
}

// problems names the trust domains with lenient rights.
func (f *foreigners) problems(own string) (list []Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, domain := range slices.Sorted(maps.Keys(f.last)) {
		one := f.last[domain]
		list = append(list, Problem{
			About: fmt.Sprintf("trust domain %q", domain),
			Reason: fmt.Sprintf("its clients are taken for clients of the same namespaces of %s (%d streams since the start, the last at %s of %s); from the next release on they see only what is exported to everybody",
				own, one.streams, one.at.UTC().Format(time.RFC3339), one.id),
			Next: "set identity.trustDomain to the name of this mesh's trust domain, and list other names of it in identity.trustDomainAliases, or give namespaces to that trust domain in identity.trustDomains; identity.trustDomains: {} applies the new rule at once",
		})
	}
	return list
}
