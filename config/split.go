package config

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/internal/spelling"
	"github.com/isthmus-mesh/isthmus/model"
)

// Split divides the calls to a host between backends.
type Split struct {
	Host      string `json:"host"`
	Namespace string `json:"namespace"` // of the service
	// Backends are the endpoints that get a share each.
	Backends []Backend `json:"backends"`
	// Locality is what becomes of near endpoints: "ignore" has clients treat all alike, and
	// "first" has them use near ones first, as without a split. The default is "ignore".
	Locality string `json:"locality"`
}

// Backend is the endpoints of the host that a source has, or that have labels, or both. With
// a host of its own, they are the endpoints of that host instead.
type Backend struct {
	Host      string            `json:"host"`
	Namespace string            `json:"namespace"` // of Host; by default the split's
	Source    string            `json:"source"`
	Labels    map[string]string `json:"labels"`
	// Weight is relative to the other backends; 0 leaves the endpoints out.
	Weight int `json:"weight"`
}

// The values of Split.Locality.
const (
	IgnoreLocality = "ignore"
	LocalityFirst  = "first"
)

// SetDefaults implements defaulter.
func (s *Split) SetDefaults() { s.Locality = IgnoreLocality }

// splitsOf returns the splits in the form of the catalog.
func splitsOf(list []Split) map[catalog.ServiceKey]*split.Split {
	if len(list) == 0 {
		return nil
	}
	splits := make(map[catalog.ServiceKey]*split.Split, len(list))
	for _, s := range list {
		of := &split.Split{NearFirst: s.Locality == LocalityFirst}
		for _, b := range s.Backends {
			backend := model.Backend{Source: b.Source, Labels: model.MapOf(b.Labels), Weight: uint32(b.Weight)} //nolint:gosec // validated
			if b.Host != "" {
				backend.Service = model.ServiceName{Namespace: cmp.Or(b.Namespace, s.Namespace), Host: b.Host}
			}
			of.Backends = append(of.Backends, backend)
		}
		splits[catalog.ServiceKey{Namespace: s.Namespace, Host: s.Host}] = of
	}
	return splits
}

// validateSplits checks the splits of a configuration with sources of these names.
func validateSplits(splits []Split, sources []string, f *findings) {
	first := map[[2]string]int{}
	for i, s := range splits {
		at := fmt.Sprintf("splits[%d]", i)
		if s.Host == "" {
			f.add(at+".host", "missing; name the host of the calls, such as reviews.example.com")
		}
		key := [2]string{s.Namespace, s.Host}
		if of, twice := first[key]; twice {
			f.add(at, "divides %s in namespace %q, as splits[%d] does already; keep one of them", s.Host, s.Namespace, of)
		} else {
			first[key] = i
		}
		if s.Namespace != "" && len(validation.IsDNS1123Label(s.Namespace)) > 0 {
			f.add(at+".namespace", "%q is not a namespace; use at most 63 lower-case letters, digits and dashes, such as shop", s.Namespace)
		}
		if !oneOf(s.Locality, IgnoreLocality, LocalityFirst) {
			f.add(at+".locality", "%q is none of ignore, first", s.Locality)
		}
		validateBackends(at+".backends", s.Backends, sources, f)
	}
}

func validateBackends(at string, backends []Backend, sources []string, f *findings) {
	switch {
	case len(backends) == 0:
		f.add(at, "missing; name at least one, such as {source: legacy, weight: 90}")
	case len(backends) > split.MostBackends:
		f.add(at, "has %d entries, and %d are the most", len(backends), split.MostBackends)
	}
	sum := 0
	for i, b := range backends {
		one := fmt.Sprintf("%s[%d]", at, i)
		sum += max(b.Weight, 0)
		switch {
		case b.Source == "" && len(b.Labels) == 0 && b.Host == "":
			f.add(one, "names no endpoints; add source: NAME, labels: {version: v2}, or host: another.example.com")
		case b.Namespace != "" && b.Host == "":
			f.add(one+".namespace", "is the namespace of another host; add host: another.example.com, or leave it out")
		case b.Source != "" && !slices.Contains(sources, b.Source):
			f.add(one+".source", "there is no source %q%s", b.Source, maybe(spelling.Nearest(b.Source, sources)))
		}
		if b.Weight < 0 || b.Weight > split.MostWeight {
			f.add(one+".weight", "%d is not between 0 and %d", b.Weight, split.MostWeight)
		}
	}
	if len(backends) > 0 && sum == 0 {
		f.add(at, "has only weights of 0, so no endpoint would be left; give at least one backend a weight")
	}
}

// maybe asks whether a name was meant; empty without a name.
func maybe(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}
