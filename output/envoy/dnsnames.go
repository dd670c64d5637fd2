package envoy

import (
	"net/netip"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
)

// names are those under which applications may look services up: the domains of their
// virtual hosts, whatever the ports, and the same service has one that several claim. It
// is made once for all views, from the one before, and is immutable.
type lookups struct {
	claims claimIndex
	hosts  immutable.Map[catalog.ServiceKey, *namedHost]
}

// namedHost is a service with what is answered for its names.
type namedHost struct {
	*portHost // of no port

	mu   sync.Mutex
	made map[string]*fragment
}

// namesOf are the names of all services of a snapshot.
func lookupsOf(s *catalog.Snapshot, domain string) *lookups {
	n := naming{domain: domain, claims: immutable.New[claim, *portHost](claim.compare).Edit(), hosts: immutable.New[catalog.ServiceKey, *namedHost](compareKeys).Edit()}
	for service := range s.Services() {
		n.enter(service.ServiceDefinition)
	}
	return n.done()
}

// after are the names after a change.
func (n *lookups) after(c catalog.Change, domain string) *lookups {
	next := naming{domain: domain, claims: n.claims.Edit(), hosts: n.hosts.Edit()}
	for key := range c.Services { // all go before any comes, whose claims may equal theirs
		next.drop(key)
	}
	for _, service := range c.Services {
		if service.New != nil {
			next.enter(service.New.ServiceDefinition)
		}
	}
	return next.done()
}

// named yields the services by host.
func (n *lookups) named(yield func(*namedHost) bool) {
	for _, h := range n.hosts.All() {
		if !yield(h) {
			return
		}
	}
}

// naming is [names] in the making.
type naming struct {
	domain  string
	claims  *immutable.Editor[claim, *portHost]
	hosts   *immutable.Editor[catalog.ServiceKey, *namedHost]
	changed []claim // that came or went
}

func (n *naming) enter(s catalog.ServiceDefinition) {
	if s.Key.Host == "" || !utf8.ValidString(s.Key.Host) {
		return
	}
	h := newPortHost(s, 0, hostsIn{domain: n.domain})
	n.set(h)
	for c := range h.claims() {
		n.changed = append(n.changed, c)
	}
}

func (n *naming) drop(key catalog.ServiceKey) {
	h, ok := n.hosts.View().Get(key)
	if !ok {
		return
	}
	n.hosts.Delete(key)
	for c := range h.claims() {
		n.claims.Delete(c)
		n.changed = append(n.changed, c)
	}
}

func (n *naming) set(h *portHost) {
	n.hosts.Set(h.Key, &namedHost{portHost: h})
	for c := range h.claims() {
		n.claims.Set(c, h)
	}
}

func (n *naming) done() *lookups {
	for _, h := range otherwiseContested(n.claims.View(), n.changed) {
		n.set(h)
	}
	return &lookups{n.claims.Map(), n.hosts.Map()}
}

// names lists those domains that are names, in lower case. Virtual hosts have addresses,
// too, and each domain once more with a final dot, which is not part of a lookup.
func (h *namedHost) names(domains []string) (list []string) {
	for _, domain := range domains {
		if name := strings.ToLower(domain); isLookedUp(name) {
			list = append(list, name)
		}
	}
	return list
}

const longestLabel = 63

// isLookedUp reports whether a name, or a wildcard for all that end like it, is one that
// DNS has. Envoy rejects the whole table for some others, and never finds the rest.
func isLookedUp(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil || len(name) > longestHost {
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
