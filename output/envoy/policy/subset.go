package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Subset is a named part of the endpoints of a host, chosen by labels. Splits name it as a
// backend. It has a cluster and a load assignment of its own for Envoys with routes of their
// own, and for connections through gateways.
type Subset struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// longestSubset limits how much subsets add to the names of clusters.
const longestSubset = 63

// Subsets returns the labels of the subsets of a host, by their names.
func (s *Settings) Subsets(host string) map[string]map[string]string {
	subsets := map[string]map[string]string{}
	for _, of := range s.entry(host).Subsets {
		subsets[of.Name] = of.Labels
	}
	return subsets
}

// FailsOver reports whether clients use the endpoints of a host by distance.
func (s *Settings) FailsOver(host string) bool { return s.entry(host).over(&s.Defaults).FailsOver() }

// entry returns the first entry that matches a host; an empty one if there is none.
func (s *Settings) entry(host string) HostPolicy {
	i := slices.IndexFunc(s.Hosts, func(h HostPolicy) bool { return model.HostWithin(host, model.ListOf(h.Host)) })
	if i < 0 {
		return HostPolicy{}
	}
	return s.Hosts[i]
}

func validateSubsets(f *faults, at string, list []Subset) {
	first := map[string]int{}
	for i, s := range list {
		field := fmt.Sprintf("%s.subsets[%d]", at, i)
		earlier, twice := first[s.Name]
		switch {
		case s.Name == "":
			f.add(field+".name", "missing; name the subset, such as v1")
		case twice:
			f.add(field+".name", "%q is also the name of subsets[%d]; give each subset another name", s.Name, earlier)
		case len(s.Name) > longestSubset || !isSubsetName(s.Name):
			f.add(field+".name", "%q is not a name of at most %d letters, digits, '-', '_' and '.'; give one, such as v1", s.Name, longestSubset)
		default:
			first[s.Name] = i
		}
		if len(s.Labels) == 0 {
			f.add(field+".labels", "missing; give labels that select its endpoints, such as version: v1")
		}
	}
}

func isSubsetName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) < 0
}

// Selector selects the endpoints of a [Subset]; nil selects all endpoints. A host keeps the
// same pointers for as long as the process runs.
type Selector struct {
	Name   string
	labels model.Labels
}

func selectorsOf(list []Subset) (ready []*Selector) {
	for _, s := range list {
		ready = append(ready, &Selector{s.Name, model.MapOf(maps.Clone(s.Labels))})
	}
	return ready
}

// Selects reports whether an endpoint with these labels is part of the subset.
func (s *Selector) Selects(labels model.Labels) bool {
	return s == nil || labels.Includes(s.labels)
}

// String is the name of the subset; empty for nil.
func (s *Selector) String() string {
	if s == nil {
		return ""
	}
	return s.Name
}
