package envoy

import (
	"cmp"
	"iter"
	"net/netip"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
)

// A domain may occur only once in a route configuration, whatever its case. Nearly all
// are claimed by one service only, so the index of claims answers which are not.

// claim is that of a service to a domain. Claims to a domain come by who owns it for
// workloads of no namespace, those that all viewers know of first.
type claim struct {
	domain string // in lower case
	own    bool   // viewers of one namespace alone know the service by it
	// foreign says that the domain is an address of the service in another cluster than
	// that of the viewers. Who has it in theirs comes first.
	foreign bool
	home    string // the namespace of own
	by      catalog.ServiceDefinition
}

func (c claim) compare(o claim) int {
	if n := cmp.Or(strings.Compare(c.domain, o.domain), compareBool(c.own, o.own), strings.Compare(c.home, o.home), compareBool(c.foreign, o.foreign)); n != 0 {
		return n
	}
	switch {
	case c.by.Definition == o.by.Definition:
		return 0
	case c.by.Definition == nil:
		return -1
	case o.by.Definition == nil:
		return 1
	}
	return c.asks().Owner("", c.by, o.by)
}

// asks is what a domain is: an address, or a name.
func (c claim) asks() catalog.Asked {
	if isAddress(c.domain) {
		return catalog.Address
	}
	return catalog.Name
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// claims yields those of a virtual host.
func (h *portHost) claims() iter.Seq[claim] {
	return func(yield func(claim) bool) {
		for _, domain := range h.domainsFor(h.home != "") {
			if !yield(h.claimTo(domain)) {
				return
			}
		}
	}
}

// claimTo is the claim to one of its domains.
func (h *portHost) claimTo(domain string) claim {
	c := claim{domain: strings.ToLower(domain), foreign: h.foreignBy(domain), by: h.ServiceDefinition}
	if h.home != "" && domain == h.name {
		c.own, c.home = true, h.home
	}
	return c
}

type claimIndex = immutable.Map[claim, *portHost]

// known yields the claims to a domain by which all viewers know services, in their order.
func known(index claimIndex, domain string) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		for c := range index.From(claim{domain: domain}) {
			if c.domain != domain || c.own || !yield(c) {
				return
			}
		}
	}
}

// knownIn yields those by which viewers of one namespace know services.
func knownIn(index claimIndex, domain, home string) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		for c := range index.From(claim{domain: domain, own: true, home: home}) {
			if c.domain != domain || c.home != home || !yield(c) {
				return
			}
		}
	}
}

// rivals yields the claims that stand against one, and the claim itself.
func rivals(index claimIndex, of claim) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		for c := range index.From(claim{domain: of.domain}) {
			if c.domain != of.domain || of.own && c.own {
				break
			}
			if !yield(c) {
				return
			}
		}
		if of.own {
			knownIn(index, of.domain, of.home)(yield)
		}
	}
}

// isContested reports whether somebody else claims one of its domains.
func (h *portHost) isContested(index claimIndex) bool {
	for c := range h.claims() {
		if h.rivalled(rivals(index, c)) {
			return true
		}
	}
	return false
}

// otherwiseContested are virtual hosts to put in the place of those for which it changed
// whether they are contested, when some claims came or went.
func otherwiseContested(index claimIndex, changed []claim) map[catalog.ServiceKey]*portHost {
	looked := map[catalog.ServiceKey]bool{}
	replaced := map[catalog.ServiceKey]*portHost{}
	domains := map[homeDomain]struct{}{} // many may claim one
	for _, c := range changed {
		at := homeDomain{c.domain, c.home}
		if _, done := domains[at]; done {
			continue
		}
		domains[at] = struct{}{}
		for rival := range rivals(index, c) {
			if looked[rival.by.Key] {
				continue
			}
			looked[rival.by.Key] = true
			h, _ := index.Get(rival)
			if contested := h.isContested(index); contested != h.contested {
				again := newPortHost(h.ServiceDefinition, h.number, h.in)
				again.contested = contested
				replaced[h.Key] = again
			}
		}
	}
	return replaced
}

func (h *portHost) rivalled(claims iter.Seq[claim]) bool {
	for c := range claims {
		if c.by.Key != h.Key {
			return true
		}
	}
	return false
}

// wonBy lists the domains that a virtual host has for a viewer: those of which no other
// service that the viewer sees is the owner.
func (h *portHost) wonBy(index claimIndex, namespace string, sees func(catalog.ServiceDefinition) bool) []string {
	var list []string
	for _, domain := range h.domainsFor(h.ownFor(namespace)) {
		c := claim{domain: strings.ToLower(domain), foreign: h.foreignBy(domain), by: h.ServiceDefinition}
		if !c.loses(known(index, c.domain), namespace, sees) && !c.loses(knownIn(index, c.domain, namespace), namespace, sees) {
			list = append(list, domain)
		}
	}
	return list
}

// foreignBy reports whether one of its domains is an address in another cluster.
func (h *portHost) foreignBy(domain string) bool {
	return h.ForeignIn(h.in.cluster) && isAddress(domain) && domain != h.Key.Host
}

// isAddress reports whether an authority is an address.
func isAddress(authority string) bool {
	_, err := netip.ParseAddr(strings.Trim(authority, "[]"))
	return err == nil
}

// loses reports whether one of some other claims is that of the owner for workloads of a
// namespace: a service that is seen, and of the viewers' cluster where the other is foreign.
func (c claim) loses(others iter.Seq[claim], namespace string, sees func(catalog.ServiceDefinition) bool) bool {
	for o := range others {
		if o.by.Key.Host == c.by.Key.Host {
			continue // of one host a viewer sees one service
		}
		near := compareBool(o.foreign, c.foreign)
		if cmp.Or(near, c.asks().Owner(namespace, o.by, c.by)) < 0 {
			if sees(o.by) {
				return true
			}
			continue
		}
		nowhere := namespace == "" || c.by.Key.Namespace == namespace
		if nowhere && cmp.Or(near, c.asks().Owner("", o.by, c.by)) > 0 {
			return false // all further ones come later for these workloads, too
		}
	}
	return false
}
