package catalog

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/home"
	"github.com/isthmus-mesh/isthmus/catalog/rank"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// Order is the order in which sources are merged, with the rights that the configuration
// grants to each source.
type Order struct {
	// Sources come in this order. Sources that are not named come last, in the order of
	// their names.
	Sources []string
	// Domains are the DNS domains of clusters. A host NAME.NAMESPACE.svc.DOMAIN belongs to
	// its namespace.
	Domains []string
	// Rights are the rights of each source, by its name. A source without an entry has none.
	Rights map[string]Rights
	// Splits divide the calls to some services.
	Splits map[ServiceKey]*split.Split
}

// Rights are the rights that the configuration grants to a source.
type Rights struct {
	// Owns are hosts that are given to the source on purpose, in the form that
	// [model.HostWithin] takes.
	Owns []string
	// Dated means that an API server vouches for the creation times of its records. Times that
	// a registry claims by itself decide nothing.
	Dated bool
	// Yields means that the source loses every address that a service of another source has.
	Yields bool
}

// Among returns the order of some sources, as listed here.
func (o Order) Among(sources []string) Order {
	some := Order{Sources: sources, Domains: o.Domains, Rights: map[string]Rights{}, Splits: o.Splits}
	for _, name := range sources {
		if r, ok := o.Rights[name]; ok {
			some.Rights[name] = r
		}
	}
	return some
}

func (r Rights) equal(o Rights) bool {
	return slices.Equal(r.Owns, o.Owns) && r.Dated == o.Dated && r.Yields == o.Yields
}

// merging is an [Order] in the builder's form. It is immutable.
type merging struct {
	ranks  rank.Places
	rights map[string]Rights // by source
	owns   map[string]model.List[string]
	homes  home.Domains
	splits map[ServiceKey]*split.Split
}

// arrange returns another order, and the sources with another place or other rights than
// before.
func (m merging) arrange(o Order) (next merging, moved map[string]struct{}) {
	next = merging{rights: o.Rights, owns: map[string]model.List[string]{}, homes: home.In(o.Domains), splits: map[ServiceKey]*split.Split{}}
	for key, s := range o.Splits {
		next.splits[key] = splitAt(key, *s)
	}
	next.ranks, moved = m.ranks.Arrange(o.Sources)
	for name, r := range o.Rights {
		if len(r.Owns) > 0 {
			next.owns[name] = model.ListOf(r.Owns...)
		}
	}
	for _, rights := range []map[string]Rights{m.rights, next.rights} {
		for source := range rights {
			if !m.rights[source].equal(next.rights[source]) {
				moved[source] = struct{}{}
			}
		}
	}
	return next, moved
}

// rank returns the merge order of a record.
func (m *merging) rank(source string, path model.Path) int { return m.ranks.Of(source, path) }

// rankOf is the same for a record that may be removed, and needs no order then.
func (m *merging) rankOf(ref model.Ref, r *model.Record) int {
	if r == nil {
		return 0
	}
	return m.rank(ref.Source, r.Path)
}

// gives reports whether a source was given a host on purpose.
func (m *merging) gives(source, host string) bool {
	patterns, some := m.owns[source]
	return some && model.HostWithin(host, patterns)
}
