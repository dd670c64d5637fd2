package files

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// lead is for how long clients have an authority before the first certificate under it is sent.
	lead = 10 * time.Second
	// lag is for how long clients have an authority after the last pair with it has gone.
	lag = time.Minute
)

// shelf is the served pairs and authorities. Its steps are pure: they follow from the pairs and
// the times alone.
type shelf struct {
	served  map[string]*pair   // by identity
	anchors map[string]*anchor // by certificate, in DER form
}

// anchor is an authority that clients trust.
type anchor struct {
	cert  *x509.Certificate
	since time.Time // when clients were first sent it
	used  time.Time // when a pair last had it
}

func newShelf() *shelf { return &shelf{map[string]*pair{}, map[string]*anchor{}} }

// arrange serves the newest pair of each identity, and the authorities of all pairs. It returns
// problems of the pairs.
func (s *shelf) arrange(pairs []*pair, now time.Time) (problems []string) {
	s.trust(pairs, now)
	slices.SortStableFunc(pairs, older)
	newest := map[string]*pair{}
	for _, p := range pairs {
		id := p.leaf.Identity
		if before := newest[id]; before != nil {
			problems = append(problems, fmt.Sprintf("%s and %s are both of %s: the newer one of %s is used; remove the other one", before.path, p.path, id, p.path))
		}
		newest[id] = p
	}
	for id, p := range newest {
		if before := s.served[id]; before != nil && before.expired(now) || s.leads(p, now) {
			s.served[id] = p
		}
	}
	maps.DeleteFunc(s.served, func(id string, _ *pair) bool { return newest[id] == nil })
	for _, p := range s.served {
		if p.expired(now) {
			problems = append(problems, fmt.Sprintf("%s: the certificate of %s expired at %s, so others reject it; renew it", p.path, p.leaf.Identity, p.leaf.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	return problems
}

// older is the order of pairs of one identity. It follows from their content, so that all
// replicas use the same one.
func older(a, b *pair) int {
	return cmp.Or(a.notBefore.Compare(b.notBefore), a.leaf.NotAfter.Compare(b.leaf.NotAfter), strings.Compare(a.leaf.Generation, b.leaf.Generation))
}

// trust adds the authorities of pairs, and removes others when no certificate under them can be
// in use. Without any pair the last ones stay. The first ones need no lead: no client is served yet.
func (s *shelf) trust(pairs []*pair, now time.Time) {
	var since time.Time
	if len(s.anchors) > 0 {
		since = now
	}
	for _, p := range pairs {
		for _, one := range p.authorities {
			a := s.anchors[string(one.Raw)]
			if a == nil {
				a = &anchor{cert: one, since: since}
				s.anchors[string(one.Raw)] = a
			}
			a.used = now
		}
	}
	if len(pairs) > 0 {
		maps.DeleteFunc(s.anchors, func(_ string, a *anchor) bool { return now.Sub(a.used) > lag })
	}
}

// leads reports whether clients trust a pair's certificate for long enough.
func (s *shelf) leads(p *pair, now time.Time) bool {
	return slices.ContainsFunc(p.anchors, func(raw string) bool {
		a := s.anchors[raw]
		return a != nil && now.Sub(a.since) >= lead
	})
}

// authorities returns the trusted certificates, in an order that follows from them.
func (s *shelf) authorities() (list []*x509.Certificate) {
	for _, raw := range slices.Sorted(maps.Keys(s.anchors)) {
		list = append(list, s.anchors[raw].cert)
	}
	return list
}
