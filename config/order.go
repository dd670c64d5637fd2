package config

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// defaultDomain is the DNS domain of a cluster that the configuration does not name.
const defaultDomain = "cluster.local"

// Order returns the merge order of the sources, with their rights.
func (c *Config) Order() catalog.Order {
	order := catalog.Order{Domains: c.clusterDomains(), Rights: map[string]catalog.Rights{}, Splits: splitsOf(c.Splits)}
	for _, s := range c.Sources {
		order.Sources = append(order.Sources, s.Name)
		_, dated := s.Settings.(source.APIServer)
		if r := (catalog.Rights{Owns: s.Owns.Hosts, Dated: dated, Yields: s.Only.Yields()}); len(r.Owns) > 0 || r.Dated || r.Yields {
			order.Rights[s.Name] = r
		}
	}
	return order
}

// clusterDomains returns the DNS domains of clusters that sources read or outputs serve.
func (c *Config) clusterDomains() (domains []string) {
	for _, s := range c.Sources {
		if of, ok := s.Settings.(source.Cluster); ok {
			domains = append(domains, of.ClusterDomain())
		}
	}
	for _, o := range c.Outputs {
		if of, ok := o.Settings.(output.Cluster); ok {
			domains = append(domains, of.ClusterDomain())
		}
	}
	domains = slices.DeleteFunc(domains, func(d string) bool { return d == "" })
	if len(domains) == 0 {
		return []string{defaultDomain}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// takenFrom names the sources that may list hosts of a pattern, and lose them to the source
// that owns it.
func (c *Config) takenFrom(owner int, pattern string) (names []string) {
	for i, s := range c.Sources {
		lists := len(s.Only.Hosts) == 0 || slices.ContainsFunc(s.Only.Hosts, func(o string) bool { return overlap(o, pattern) })
		first := i < owner && slices.ContainsFunc(s.Owns.Hosts, func(o string) bool { return overlap(o, pattern) })
		if i != owner && lists && !first {
			names = append(names, s.Name)
		}
	}
	return names
}

// overlap reports whether both patterns match a common host.
func overlap(a, b string) bool {
	return model.HostWithin(a, model.ListOf(b)) || model.HostWithin(b, model.ListOf(a))
}
