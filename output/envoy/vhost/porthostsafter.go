package vhost

import (
	"slices"
	"sort"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// after is what [newPortHosts] makes of an index, where services of a few hosts have
// changed since. It looks at the runs that these are in, and at no other service.
func (a *Port) after(index *catalog.PortServices, hosts []string) *Port {
	b := building{index: index, in: a.In, claims: a.Claims.Edit()}
	next := make([]*stretch, len(a.Runs))
	for _, s := range a.around(hosts) {
		s.members = b.merge(membersOf(a.Runs[s.from:s.to]), index.Between(a.firstOf(s.from), a.firstOf(s.to)))
		next[s.from] = s
	}
	for key, h := range otherwiseContested(b.claims.View(), b.changed) {
		for c := range h.Claims() {
			b.claims.Set(c, h)
		}
		a.stretchOf(next, key.Host).replace(key, h)
	}
	var runs []*run
	for i := 0; i < len(a.Runs); {
		s := next[i]
		if s == nil {
			runs = append(runs, a.Runs[i])
			i++
			continue
		}
		runs = append(runs, cut(a.Runs[s.from:s.to], s.members)...)
		i = s.to
	}
	return &Port{index, a.In, b.claims.Map(), runs}
}

// stretch is runs that follow each other, with the services that take their place.
type stretch struct {
	from, to int
	members  []member
}

// replace puts a virtual host in the place of the one that a service has.
func (s *stretch) replace(key catalog.ServiceKey, h *Host) {
	at, _ := slices.BinarySearchFunc(s.members, key, func(m member, key catalog.ServiceKey) int { return reach.CompareKeys(m.Key, key) })
	s.members[at].Host = h
}

// around returns the runs that hosts are in or come into, and with each the run before:
// if the host goes that a run begins with, the rest belongs to that one.
func (a *Port) around(hosts []string) (list []*stretch) {
	var at []int
	for _, host := range hosts {
		i := a.runOf(host)
		at = append(at, max(0, i-1), i)
	}
	slices.Sort(at)
	for _, i := range slices.Compact(at) {
		if n := len(list); n > 0 && list[n-1].to == i {
			list[n-1].to++
			continue
		}
		list = append(list, &stretch{from: i, to: i + 1})
	}
	return list
}

// runOf is the run that a host is in, or would be in if no run began with it.
func (a *Port) runOf(host string) int {
	return max(0, sort.Search(len(a.Runs), func(i int) bool { return a.Runs[i].first() > host })-1)
}

// firstOf is the host that a run begins with, and the empty string for what comes before
// all of them and behind.
func (a *Port) firstOf(i int) string {
	if i == 0 || i == len(a.Runs) {
		return ""
	}
	return a.Runs[i].first()
}

// stretchOf is the one that a host is in. It is made if there is none.
func (a *Port) stretchOf(next []*stretch, host string) *stretch {
	i := a.runOf(host)
	for from := i; from >= 0; from-- {
		if s := next[from]; s != nil {
			if s.to > i {
				return s
			}
			break
		}
	}
	next[i] = &stretch{i, i + 1, slices.Clone(a.Runs[i].Members)}
	return next[i]
}
