package config

import (
	"cmp"
	"fmt"
	"maps"
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
	Host      string `json:"host"`
	Namespace string `json:"namespace"` // of Host; by default the split's
	Source    string `json:"source"`
	// Subset is the name of a subset of the host in outputs.xds.envoy.hosts, in place of Labels.
	// Loading the configuration sets Labels to the labels of the subset.
	Subset string            `json:"subset"`
	Labels map[string]string `json:"labels"`
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

// hostSettings is the settings of an output that has settings for hosts.
type hostSettings interface {
	// Subsets returns the labels of the subsets of a host, by their names.
	Subsets(host string) map[string]map[string]string
	// FailsOver reports whether clients use the endpoints of a host by distance.
	FailsOver(host string) bool
}

// hostSettingsOf returns the settings for hosts of the first output that has some; nil if
// none has.
func hostSettingsOf(outputs []Output) hostSettings {
	for _, o := range outputs {
		if of, ok := o.Settings.(hostSettings); ok {
			return of
		}
	}
	return nil
}

// subsetsOf returns the labels of the subsets of a backend's host, by their names.
func subsetsOf(s Split, b Backend, hosts hostSettings) map[string]map[string]string {
	if hosts == nil {
		return nil
	}
	return hosts.Subsets(cmp.Or(b.Host, s.Host))
}

// labelSubsets sets the labels of backends that name a subset.
func labelSubsets(splits []Split, hosts hostSettings) {
	for _, s := range splits {
		for i, b := range s.Backends {
			if b.Subset != "" {
				s.Backends[i].Labels = maps.Clone(subsetsOf(s, b, hosts)[b.Subset])
			}
		}
	}
}

// warnOfLocality lists the splits that switch off locality failover.
func warnOfLocality(splits []Split, hosts hostSettings) (list []string) {
	for i, s := range splits {
		if hosts != nil && s.Locality == IgnoreLocality && hosts.FailsOver(s.Host) {
			list = append(list, fmt.Sprintf("splits[%d].locality: %q switches off the locality failover of %s that an output asks for; set first to keep it, or localityFailover: false for the host",
				i, IgnoreLocality, s.Host))
		}
	}
	return list
}

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
		splits[catalog.KeyOf(s.Namespace, s.Host)] = of
	}
	return splits
}

// validateSplits checks the splits of a configuration with sources of these names.
func validateSplits(splits []Split, sources []string, hosts hostSettings, f *findings) {
	first := map[catalog.ServiceKey]int{}
	for i, s := range splits {
		at := fmt.Sprintf("splits[%d]", i)
		if s.Host == "" {
			f.add(at+".host", "missing; name the host of the calls, such as reviews.example.com")
		}
		key := catalog.KeyOf(s.Namespace, s.Host)
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
		validateBackends(at+".backends", s, sources, hosts, f)
	}
}

func validateBackends(at string, of Split, sources []string, hosts hostSettings, f *findings) {
	backends := of.Backends
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
		case b.Source == "" && b.Subset == "" && len(b.Labels) == 0 && b.Host == "":
			f.add(one, "names no endpoints; add source: NAME, labels: {version: v2}, or host: another.example.com")
		case b.Namespace != "" && b.Host == "":
			f.add(one+".namespace", "is the namespace of another host; add host: another.example.com, or leave it out")
		case b.Source != "" && !slices.Contains(sources, b.Source):
			f.add(one+".source", "there is no source %q%s", b.Source, maybe(spelling.Nearest(b.Source, sources)))
		}
		if b.Subset != "" {
			validateSubset(one, cmp.Or(b.Host, of.Host), b, subsetsOf(of, b, hosts), f)
		}
		if b.Weight < 0 || b.Weight > split.MostWeight {
			f.add(one+".weight", "%d is not between 0 and %d", b.Weight, split.MostWeight)
		}
	}
	if len(backends) > 0 && sum == 0 {
		f.add(at, "has only weights of 0, so no endpoint would be left; give at least one backend a weight")
	}
}

// validateSubset checks the subset that a backend names, of a host.
func validateSubset(at, host string, b Backend, known map[string]map[string]string, f *findings) {
	switch _, ok := known[b.Subset]; {
	case len(b.Labels) > 0:
		f.add(at, "has a subset, which stands for its labels, and labels as well; keep one of them")
	case !ok && len(known) > 0:
		f.add(at+".subset", "outputs.xds.envoy.hosts has no subset %q of %s%s", b.Subset, host, maybe(spelling.Nearest(b.Subset, slices.Sorted(maps.Keys(known)))))
	case !ok:
		f.add(at+".subset", "outputs.xds.envoy.hosts has no subsets of %s; add this one, or write labels: {version: v2} instead", host)
	}
}

// maybe asks whether a name was meant; empty without a name.
func maybe(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}
