package compose

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// accounts are how the accounts of a service's endpoints are written. Istio reads the account of an
// endpoint as a name in the namespace of its object. An account of another namespace or trust
// domain is a name of the whole service instead, which Istio accepts of every endpoint. Istio takes
// these names from one of a service's objects, so all objects have them.
type accounts struct {
	namespace, trustDomain string
	others                 []string // identities, in order
}

// accountsOf returns the accounts of the endpoints at the written ports, healthy or not.
func (l Layout) accountsOf(s *catalog.Service) *accounts {
	a := &accounts{namespace: s.Key.Namespace, trustDomain: l.TrustDomain}
	for _, port := range WrittenPorts(s) {
		for account := range s.Endpoints(port.Number).Accounts() {
			if _, own := account.NameIn(a.namespace, a.trustDomain); !own {
				a.others = append(a.others, account.Identity(a.trustDomain))
			}
		}
	}
	slices.Sort(a.others)
	a.others = slices.Compact(a.others)
	return a
}

// of returns the name of an endpoint's account; empty if it is one of the others.
func (a *accounts) of(e endpoint) string {
	name, own := e.Account().NameIn(a.namespace, a.trustDomain)
	if !own {
		return ""
	}
	return name
}

// names returns the names of which the certificate of an endpoint has one.
func (a *accounts) names(s *catalog.Service) []string {
	names := s.SubjectAltNames.Slice()
	for _, other := range a.others {
		if !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	return names
}
