package vhost

import (
	"cmp"
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// A domain may occur only once in a route configuration, whatever its case. Nearly all
// are claimed by one service only, so the index of claims answers which are not.

// Claim is that of a service to a domain. Claims to a domain come by who owns it for
// workloads of no namespace, those that all viewers know of first.
type Claim struct {
	Domain string // in lower case
	Own    bool   // viewers of one namespace alone know the service by it
	// foreign says that the domain is an address of the service in another cluster than
	// that of the viewers. Who has it in theirs comes first.
	Foreign bool
	Home    string // the namespace of own
	By      catalog.ServiceDefinition
}

func (c Claim) compare(o Claim) int {
	if n := cmp.Or(strings.Compare(c.Domain, o.Domain), CompareBool(c.Own, o.Own), strings.Compare(c.Home, o.Home), CompareBool(c.Foreign, o.Foreign)); n != 0 {
		return n
	}
	switch {
	case c.By.Definition == o.By.Definition:
		return 0
	case c.By.Definition == nil:
		return -1
	case o.By.Definition == nil:
		return 1
	}
	return c.Asks().Owner("", c.By, o.By)
}

// Asks is what a domain is: an address, or a name.
func (c Claim) Asks() catalog.Asked {
	if reach.IsAddress(c.Domain) {
		return catalog.Address
	}
	return catalog.Name
}

// CompareBool orders false before true.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Claims yields those of a virtual host.
func (h *Host) Claims() iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		if h.unrouted {
			return
		}
		for _, domain := range h.DomainsFor(h.Home() != "") {
			if !yield(h.ClaimTo(domain)) {
				return
			}
		}
	}
}

// ClaimTo is the claim to one of its domains.
func (h *Host) ClaimTo(domain string) Claim {
	c := Claim{Domain: strings.ToLower(domain), Foreign: h.foreignBy(domain), By: h.ServiceDefinition}
	if home := h.Home(); home != "" && domain == h.name {
		c.Own, c.Home = true, home
	}
	return c
}

type claimIndex = immutable.Map[Claim, *Host]

// known yields the claims to a domain by which all viewers know services, in their order.
func known(index claimIndex, domain string) iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		for c := range index.From(Claim{Domain: domain}) {
			if c.Domain != domain || c.Own || !yield(c) {
				return
			}
		}
	}
}

// knownIn yields those by which viewers of one namespace know services.
func knownIn(index claimIndex, domain, home string) iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		for c := range index.From(Claim{Domain: domain, Own: true, Home: home}) {
			if c.Domain != domain || c.Home != home || !yield(c) {
				return
			}
		}
	}
}

// Rivals yields the claims that stand against one, and the claim itself.
func Rivals(index claimIndex, of Claim) iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		for c := range index.From(Claim{Domain: of.Domain}) {
			if c.Domain != of.Domain || of.Own && c.Own {
				break
			}
			if !yield(c) {
				return
			}
		}
		if of.Own {
			knownIn(index, of.Domain, of.Home)(yield)
		}
	}
}

// isContested reports whether somebody else claims one of its domains.
func (h *Host) isContested(index claimIndex) bool {
	for c := range h.Claims() {
		if h.rivalled(Rivals(index, c)) {
			return true
		}
	}
	return false
}

// otherwiseContested are virtual hosts to put in the place of those for which it changed
// whether they are contested, when some claims came or went.
func otherwiseContested(index claimIndex, changed []Claim) map[catalog.ServiceKey]*Host {
	looked := map[catalog.ServiceKey]bool{}
	replaced := map[catalog.ServiceKey]*Host{}
	domains := map[HomeDomain]struct{}{} // many may claim one
	for _, c := range changed {
		at := HomeDomain{c.Domain, c.Home}
		if _, done := domains[at]; done {
			continue
		}
		domains[at] = struct{}{}
		for rival := range Rivals(index, c) {
			if looked[rival.By.Key] {
				continue
			}
			looked[rival.By.Key] = true
			h, _ := index.Get(rival)
			if contested := h.isContested(index); contested != h.Contested {
				again := NewHost(h.ServiceDefinition, h.Number, h.In)
				again.Contested, again.selective = contested, h.selective
				replaced[h.Key] = again
			}
		}
	}
	return replaced
}

func (h *Host) rivalled(claims iter.Seq[Claim]) bool {
	for c := range claims {
		if c.By.Key != h.Key {
			return true
		}
	}
	return false
}

// WonBy lists the domains that a virtual host has for a viewer: those of which no other
// service that the viewer sees is the owner.
func (h *Host) WonBy(index claimIndex, namespace string, sees func(catalog.ServiceDefinition) bool) []string {
	var list []string
	for _, domain := range h.DomainsFor(h.OwnFor(namespace)) {
		c := Claim{Domain: strings.ToLower(domain), Foreign: h.foreignBy(domain), By: h.ServiceDefinition}
		if !c.loses(known(index, c.Domain), namespace, sees) && !c.loses(knownIn(index, c.Domain, namespace), namespace, sees) {
			list = append(list, domain)
		}
	}
	return list
}

// foreignBy reports whether one of its domains is an address in another cluster.
func (h *Host) foreignBy(domain string) bool {
	return h.ForeignIn(h.In.Cluster) && reach.IsAddress(domain) && domain != h.Key.Host
}

// loses reports whether one of some other claims is that of the owner for workloads of a
// namespace: a service that is seen, and of the viewers' cluster where the other is foreign.
func (c Claim) loses(others iter.Seq[Claim], namespace string, sees func(catalog.ServiceDefinition) bool) bool {
	for o := range others {
		if o.By.Key.Host == c.By.Key.Host {
			continue // of one host a viewer sees one service
		}
		near := CompareBool(o.Foreign, c.Foreign)
		if cmp.Or(near, c.Asks().Owner(namespace, o.By, c.By)) < 0 {
			if sees(o.By) {
				return true
			}
			continue
		}
		nowhere := namespace == "" || c.By.Key.Namespace == namespace
		if nowhere && cmp.Or(near, c.Asks().Owner("", o.By, c.By)) > 0 {
			return false // all further ones come later for these workloads, too
		}
	}
	return false
}
