package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// subsetForm is the form in which a kind of client gets a subset of a service port. Where
// clients resolve names it depends on how many of them are in the subset.
func subsetForm(s *policy.Selector, kind string, of *catalog.Service, port model.Port) form {
	whole := formFor(kind, of, port)
	switch {
	case s == nil || whole == noForm || whole == eds:
		return whole
	case whole == originalDST: // there are no endpoints to choose from
		return noForm
	case isGRPC(kind): // it resolves one name, which is the whole
		return noForm
	}
	f, _ := offerDNS(kind, of, port, s)
	return f
}

// named yields the names of a resource and of its subsets.
func (r *row) named(host string, port uint32, subsets []*policy.Selector) iter.Seq2[*policy.Selector, string] {
	return func(yield func(*policy.Selector, string) bool) {
		name := r.name(host, port)
		if !yield(nil, name) || !r.subsets {
			return
		}
		for _, s := range subsets {
			if !yield(s, names.Subset(host, port, s.Name)) {
				return
			}
		}
	}
}

// touched are the subsets of which endpoints changed.
func touched(subsets []*policy.Selector, c catalog.ServiceChange) (some []*policy.Selector) {
	for _, s := range subsets {
		for id := range c.Endpoints {
			if holds(s, c.Old, id) || holds(s, c.New, id) {
				some = append(some, s)
				break
			}
		}
	}
	return some
}

// leftSubset reports whether an endpoint left the subset, even if it still serves others.
func leftSubset(s *policy.Selector, c catalog.ServiceChange) bool {
	if s == nil || c.Old == nil || c.New == nil {
		return false
	}
	for id := range c.Endpoints {
		if holds(s, c.Old, id) && !holds(s, c.New, id) {
			return true
		}
	}
	return false
}

// holds reports whether an endpoint of a service is part of the subset.
func holds(s *policy.Selector, of *catalog.Service, id catalog.EndpointID) bool {
	e, ok := of.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	return ok && s.Selects(e.Labels)
}
