package catalog

import (
	"cmp"
	"slices"
	"strings"

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
	some := Order{Sources: sources, Domains: o.Domains, Rights: map[string]Rights{}}
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
	ranks   ranks
	rights  map[string]Rights // by source
	owns    map[string]model.List[string]
	domains []string // each as ".svc.DOMAIN" in lower case, the longest first
}

// arrange returns another order, and the sources with another place or other rights than
// before.
func (m merging) arrange(o Order) (next merging, moved map[string]struct{}) {
	next = merging{rights: o.Rights, owns: map[string]model.List[string]{}}
	next.ranks, moved = m.ranks.arrange(o.Sources)
	for name, r := range o.Rights {
		if len(r.Owns) > 0 {
			next.owns[name] = model.ListOf(r.Owns...)
		}
	}
	for _, domain := range o.Domains {
		next.domains = append(next.domains, ".svc."+strings.ToLower(strings.Trim(domain, ".")))
	}
	slices.SortFunc(next.domains, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	next.domains = slices.Compact(next.domains)
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
func (m *merging) rank(source string, path model.Path) int { return m.ranks.of(source, path) }

// gives reports whether a source was given a host on purpose.
func (m *merging) gives(source, host string) bool {
	patterns, some := m.owns[source]
	return some && model.HostWithin(strings.TrimSuffix(host, "."), patterns)
}

// home returns the namespace that a host belongs to by its name, NAME.NAMESPACE.svc.DOMAIN.
// A wildcard over the names of several namespaces belongs to none of them. Bound is false
// for all other hosts.
func (m *merging) home(host string) (namespace string, bound bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, domain := range m.domains {
		if host == "*"+domain || host == "*"+strings.TrimPrefix(domain, ".svc") {
			return "", true
		}
		rest, within := strings.CutSuffix(host, domain)
		if at := strings.LastIndexByte(rest, '.'); within && at > 0 && at+1 < len(rest) {
			return rest[at+1:], true
		}
	}
	return "", false
}

// ranks are the merge order of sources, as one number for each source. A number stays while
// other sources are inserted, removed or moved, because the numbers have gaps. Claims and
// definitions, which carry the number, therefore stay valid. Ranks are immutable.
type ranks struct{ places map[string]int }

const (
	// lastPlace is the place of every source that the order does not name.
	lastPlace = 1<<24 - 1
	// spacing is the usual distance of two places. Places run out after about a thousand
	// appended sources, or after 14 inserted one after the other before the same source.
	spacing = 1 << 14
	// longestPath is the length from which on paths count as equally long. A rank of this
	// length still fits into 31 bits.
	longestPath = 127
)

// of returns the rank of a record: records that came through fewer Isthmuses come first,
// then sources by their order. A record that came through this Isthmus on its way is
// therefore never preferred to its original.
func (r ranks) of(source string, path model.Path) int {
	return min(path.Len(), longestPath)*(lastPlace+1) + r.place(source)
}

func (r ranks) place(source string) int {
	if at, ok := r.places[source]; ok {
		return at
	}
	return lastPlace
}

// arrange returns the ranks of another order, and the sources with another place than
// before. These are as few as possible, except when there is no room left: then all places
// are assigned anew.
func (r ranks) arrange(order []string) (next ranks, moved map[string]struct{}) {
	next, ok := r.around(order, r.unmoved(order))
	if !ok {
		next, _ = r.around(order, nil)
	}
	moved = map[string]struct{}{}
	for _, sources := range []map[string]int{r.places, next.places} {
		for source := range sources {
			if r.place(source) != next.place(source) {
				moved[source] = struct{}{}
			}
		}
	}
	return next, moved
}

// around gives each source of an order a place, between the sources that keep theirs. It
// reports false if there is no room.
func (r ranks) around(order []string, keep map[string]struct{}) (next ranks, ok bool) {
	next = ranks{make(map[string]int, len(order))}
	before, run := 0, []string(nil) // the last place given, and the following sources without a place
	fill := func(limit int) bool {
		step := min(spacing, (limit-before)/(len(run)+1))
		for i, source := range run {
			next.places[source] = before + (i+1)*step
		}
		run = nil
		return step > 0
	}
	for _, source := range order {
		if _, stays := keep[source]; !stays {
			run = append(run, source)
			continue
		}
		at := r.places[source]
		if !fill(at) {
			return ranks{}, false
		}
		next.places[source], before = at, at
	}
	return next, fill(lastPlace)
}

// unmoved returns the largest set of sources that already stand in an order: a longest
// ascending run of their places.
func (r ranks) unmoved(order []string) map[string]struct{} {
	type link struct {
		source string
		place  int
		before *link
	}
	var ends []*link // for each length, the ascending run that ends lowest
	for _, source := range order {
		at, ok := r.places[source]
		if !ok {
			continue
		}
		n, _ := slices.BinarySearchFunc(ends, at, func(l *link, place int) int { return l.place - place })
		one := &link{source: source, place: at}
		if n > 0 {
			one.before = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, one)
		} else {
			ends[n] = one
		}
	}
	keep := map[string]struct{}{}
	if len(ends) > 0 {
		for l := ends[len(ends)-1]; l != nil; l = l.before {
			keep[l.source] = struct{}{}
		}
	}
	return keep
}
