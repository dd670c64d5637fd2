package envoy

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

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
