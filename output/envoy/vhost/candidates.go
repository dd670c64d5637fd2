package vhost

import (
	"cmp"
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/internal/order"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// A domain may occur only once in a route configuration. Nearly all
// have one service only. The index of candidates finds the others.

// Candidate is a service that may own a domain. The candidates for a domain are ordered by
// ownership for workloads of no namespace; candidates that all viewers know come first.
type Candidate struct {
	Domain string
	Own    bool // the domain is a bare name, valid in one namespace
	// Foreign says that the domain is an address of the service in another cluster than the
	// viewers'. A service with the address in their cluster comes first.
	Foreign bool
	Home    string // the namespace of a bare name
	Cluster string // of the viewers
	By      catalog.ServiceDefinition
}

func (c Candidate) compare(o Candidate) int {
	if n := cmp.Or(strings.Compare(c.Domain, o.Domain), order.TrueFirst(o.Own, c.Own), strings.Compare(c.Home, o.Home), order.TrueFirst(o.Foreign, c.Foreign)); n != 0 {
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
func (c Candidate) Asks() catalog.Asked { return reach.AskedBy(c.Cluster, c.Domain) }

// Candidates yields those of a virtual host.
func (h *Host) Candidates() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		if h.unrouted {
			return
		}
		for _, domain := range h.DomainsFor(h.Home() != "") {
			if !yield(h.CandidateFor(domain)) {
				return
			}
		}
	}
}

// CandidateFor returns the candidate of the service for one of its domains.
func (h *Host) CandidateFor(domain string) Candidate {
	c := h.candidate(domain)
	if home := h.Home(); home != "" && domain == h.name {
		c.Own, c.Home = true, home
	}
	return c
}

func (h *Host) candidate(domain string) Candidate {
	return Candidate{Domain: domain, Foreign: h.foreignBy(domain), Cluster: h.In.Cluster, By: h.ServiceDefinition}
}

type candidateIndex = immutable.Map[Candidate, *Host]

// known yields the candidates for a domain that all viewers know, in their order.
func known(index candidateIndex, domain string) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for c := range index.From(Candidate{Domain: domain}) {
			if c.Domain != domain || c.Own || !yield(c) {
				return
			}
		}
	}
}

// knownIn yields the candidates for a bare name in one namespace.
func knownIn(index candidateIndex, domain, home string) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for c := range index.From(Candidate{Domain: domain, Own: true, Home: home}) {
			if c.Domain != domain || c.Home != home || !yield(c) {
				return
			}
		}
	}
}

// Conflicting yields the candidates for the same domain, a given one included.
func Conflicting(index candidateIndex, of Candidate) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for c := range index.From(Candidate{Domain: of.Domain}) {
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

// conflicts reports whether another service is a candidate for one of the domains.
func (h *Host) conflicts(index candidateIndex) bool {
	for c := range h.Candidates() {
		if h.hasOther(Conflicting(index, c)) {
			return true
		}
	}
	return false
}

// changedConflicts returns the virtual hosts that enter or leave a conflict when some
// candidates come or go.
func changedConflicts(index candidateIndex, changed []Candidate) map[catalog.ServiceKey]*Host {
	looked := map[catalog.ServiceKey]bool{}
	replaced := map[catalog.ServiceKey]*Host{}
	domains := map[LocalDomain]struct{}{} // each once
	for _, c := range changed {
		at := LocalDomain{c.Domain, c.Home}
		if _, done := domains[at]; done {
			continue
		}
		domains[at] = struct{}{}
		for other := range Conflicting(index, c) {
			if looked[other.By.Key] {
				continue
			}
			looked[other.By.Key] = true
			h, _ := index.Get(other)
			if now := h.conflicts(index); now != h.InConflict {
				again := NewHost(h.ServiceDefinition, h.Number, h.In)
				again.InConflict, again.selective = now, h.selective
				replaced[h.Key] = again
			}
		}
	}
	return replaced
}

// hasOther reports whether any of some candidates is another service.
func (h *Host) hasOther(candidates iter.Seq[Candidate]) bool {
	for c := range candidates {
		if c.By.Key != h.Key {
			return true
		}
	}
	return false
}

// WonBy lists the domains that a virtual host has for a viewer: those of which no other
// service that the viewer sees is the owner.
func (h *Host) WonBy(index candidateIndex, namespace string, sees func(catalog.ServiceDefinition) bool) []string {
	var list []string
	for _, domain := range h.DomainsFor(h.OwnFor(namespace)) {
		c := h.candidate(domain)
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

// loses reports whether another candidate owns the domain for workloads of a namespace: a
// visible service, and one of the viewers' cluster before a foreign one.
func (c Candidate) loses(others iter.Seq[Candidate], namespace string, sees func(catalog.ServiceDefinition) bool) bool {
	for o := range others {
		if o.By.Key.Host == c.By.Key.Host {
			continue // of one host a viewer sees one service
		}
		near := order.TrueFirst(c.Foreign, o.Foreign)
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
