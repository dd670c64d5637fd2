package vhost

import (
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// Lookups are the names under which applications may look services up: the domains of their
// virtual hosts, whatever the ports. A domain has the same owner as in routes. Lookups are made
// once for all views, from the ones before, and are immutable.
type Lookups struct {
	Candidates candidateIndex
	hosts      immutable.Map[catalog.ServiceKey, *LookupHost]
}

// LookupHost is a service with what is answered for its names.
type LookupHost struct {
	*Host // of no port

	mu   sync.Mutex
	made map[string]*Fragment
}

// LookupsOf are the names of all services of a snapshot.
func LookupsOf(s *catalog.Snapshot, domain string) *Lookups {
	n := naming{domain: domain, candidates: immutable.New[Candidate, *Host](Candidate.compare).Edit(), hosts: immutable.New[catalog.ServiceKey, *LookupHost](catalog.ServiceKey.Compare).Edit()}
	for service := range s.Services() {
		n.enter(service.ServiceDefinition)
	}
	return n.done()
}

// After are the names after a change.
func (n *Lookups) After(c catalog.Change, domain string) *Lookups {
	next := naming{domain: domain, candidates: n.Candidates.Edit(), hosts: n.hosts.Edit()}
	for key := range c.Services { // all go before any comes, whose candidates may equal theirs
		next.drop(key)
	}
	for _, service := range c.Services {
		if service.New != nil {
			next.enter(service.New.ServiceDefinition)
		}
	}
	return next.done()
}

// Named yields the services by host.
func (n *Lookups) Named(yield func(*LookupHost) bool) {
	for _, h := range n.hosts.All() {
		if !yield(h) {
			return
		}
	}
}

// naming is [names] in the making.
type naming struct {
	domain     string
	candidates *immutable.Editor[Candidate, *Host]
	hosts      *immutable.Editor[catalog.ServiceKey, *LookupHost]
	changed    []Candidate // that came or went
}

func (n *naming) enter(s catalog.ServiceDefinition) {
	if s.Key.Host == "" || !utf8.ValidString(s.Key.Host) {
		return
	}
	h := NewHost(s, 0, Key{Domain: n.domain})
	n.set(h)
	for c := range h.Candidates() {
		n.changed = append(n.changed, c)
	}
}

func (n *naming) drop(key catalog.ServiceKey) {
	h, ok := n.hosts.View().Get(key)
	if !ok {
		return
	}
	n.hosts.Delete(key)
	for c := range h.Candidates() {
		n.candidates.Delete(c)
		n.changed = append(n.changed, c)
	}
}

func (n *naming) set(h *Host) {
	n.hosts.Set(h.Key, &LookupHost{Host: h})
	for c := range h.Candidates() {
		n.candidates.Set(c, h)
	}
}

func (n *naming) done() *Lookups {
	for _, h := range changedConflicts(n.candidates.View(), n.changed) {
		n.set(h)
	}
	return &Lookups{n.candidates.Map(), n.hosts.Map()}
}

// Names lists those domains that are names. Virtual hosts have addresses,
// too, and each domain once more with a final dot, which is not part of a lookup.
func (h *LookupHost) Names(domains []string) (list []string) {
	for _, domain := range domains {
		if IsLookedUp(domain) {
			list = append(list, domain)
		}
	}
	return list
}

const longestLabel = 63

// IsLookedUp reports whether a name, or a wildcard for all that end like it, is one that
// DNS has. Envoy rejects the whole table for some others, and never finds the rest.
func IsLookedUp(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil || len(name) > LongestHost {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(name, "*."), ".") {
		if label == "" || len(label) > longestLabel || strings.ContainsFunc(label, isNoLetter) {
			return false
		}
	}
	return true
}

func isNoLetter(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// FragmentOf is what is answered for names of a service. It is made once for all views
// that are given the same.
func (h *LookupHost) FragmentOf(names, addresses []string, ttl time.Duration) *Fragment {
	key := strings.Join(names, " ") + "\n" + strings.Join(addresses, " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.made[key]
	if f == nil {
		if h.made == nil {
			h.made = map[string]*Fragment{}
		}
		text := wire.DNSAnswers(names, addresses, ttl)
		f = &Fragment{text, VersionOf(text)}
		h.made[key] = f
	}
	return f
}
