package envoy

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Subset is those endpoints of a host that have all of its labels. It has a cluster
// and a load assignment of its own, for the routes of whoever wants to choose.
type Subset struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// longestSubset bounds what subsets add to the names of clusters.
const longestSubset = 63

func validateSubsets(f *faults, at string, list []Subset) {
	first := map[string]int{}
	for i, s := range list {
		field := fmt.Sprintf("%s.subsets[%d]", at, i)
		earlier, twice := first[s.Name]
		switch {
		case s.Name == "":
			f.add(field+".name", "missing; name the subset, such as v1")
		case twice:
			f.add(field+".name", "%q is that of subsets[%d] already; give each another name", s.Name, earlier)
		case len(s.Name) > longestSubset || !isSubsetName(s.Name):
			f.add(field+".name", "%q is not made of at most %d letters, digits, '-', '_' and '.'; give such as v1", s.Name, longestSubset)
		default:
			first[s.Name] = i
		}
		if len(s.Labels) == 0 {
			f.add(field+".labels", "missing; give those that the endpoints have, such as version: v1")
		}
	}
}

func isSubsetName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) < 0
}

// subset is a Subset that is ready to be asked. A host has the same pointers for as
// long as the process runs; nil stands for all of its endpoints.
type subset struct {
	name   string
	labels model.Labels
}

func subsetsOf(list []Subset) (ready []*subset) {
	for _, s := range list {
		ready = append(ready, &subset{s.Name, model.MapOf(maps.Clone(s.Labels))})
	}
	return ready
}

// has reports whether an endpoint is part of the subset.
func (s *subset) has(e catalog.Endpoint) bool {
	if s == nil {
		return true
	}
	for name, value := range s.labels.All() {
		if got, ok := e.Labels.Get(name); !ok || got != value {
			return false
		}
	}
	return true
}

func (s *subset) String() string {
	if s == nil {
		return ""
	}
	return s.name
}

// subset returns that of a name under a policy; the empty name stands for all endpoints.
func (s *settings) subset(p *Policy, name string) (*subset, bool) {
	if name == "" {
		return nil, true
	}
	at := slices.IndexFunc(s.subsets[p], func(of *subset) bool { return of.name == name })
	if at < 0 {
		return nil, false
	}
	return s.subsets[p][at], true
}

// formOf is the form in which a kind of client gets a subset of a service port. Where
// clients resolve names it depends on how many of them are in the subset.
func (s *subset) formOf(kind string, of *catalog.Service, port model.Port) form {
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
func (r *row) named(host string, port uint32, subsets []*subset) iter.Seq2[*subset, string] {
	return func(yield func(*subset, string) bool) {
		name := r.name(host, port)
		if !yield(nil, name) || !r.subsets {
			return
		}
		for _, s := range subsets {
			if !yield(s, SubsetName(host, port, s.name)) {
				return
			}
		}
	}
}

// touched are the subsets of which endpoints changed.
func touched(subsets []*subset, c catalog.ServiceChange) (some []*subset) {
	for _, s := range subsets {
		for id := range c.Endpoints {
			if s.holds(c.Old, id) || s.holds(c.New, id) {
				some = append(some, s)
				break
			}
		}
	}
	return some
}

// left reports whether an endpoint is part of the subset no longer, be it that it
// still serves the others.
func (s *subset) left(c catalog.ServiceChange) bool {
	if s == nil || c.Old == nil || c.New == nil {
		return false
	}
	for id := range c.Endpoints {
		if s.holds(c.Old, id) && !s.holds(c.New, id) {
			return true
		}
	}
	return false
}

// holds reports whether an endpoint of a service is part of the subset.
func (s *subset) holds(of *catalog.Service, id catalog.EndpointID) bool {
	e, ok := of.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	return ok && s.has(e)
}
