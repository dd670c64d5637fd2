package app

import (
	"context"
	"reflect"
	"slices"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// selection is the sources that a branch takes. Its zero value takes all.
type selection struct {
	only []string // their names; empty means all except out
	out  []string // names of the excluded sources
	// unknown are the names of sources that may have to be excluded. They belong to the
	// branch, but their records do not pass: they count as sources that have not been listed
	// yet.
	unknown []string
}

// targetOf returns the API server that an output's sources are compared with; false if the
// output writes to none, or names its sources.
func targetOf(settings output.Settings, rehearsed bool) (target, bool) {
	written, writes := settings.(output.APIServer)
	return target{written, rehearsed}, writes && len(written.Only()) == 0
}

// selectionOf returns the sources that an output takes: the named ones, or otherwise all
// that do not read the cluster that it writes to.
func selectionOf(ctx context.Context, settings output.Settings, c *config.Config, rehearsed bool) (s selection, found []related) {
	to, compares := targetOf(settings, rehearsed)
	switch {
	case compares:
		found = to.relate(ctx, c.Sources)
	case to.APIServer != nil:
		s.only = slices.Sorted(slices.Values(to.Only()))
	}
	for _, one := range found {
		s = s.with(one.name, one.relation)
	}
	return s, found
}

// with returns the selection with a source of a known relation.
func (s selection) with(name string, r relation) selection {
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return one == name })
	}
	s.out, s.unknown = without(s.out), without(s.unknown)
	switch r {
	case same:
		s.out = slices.Sorted(slices.Values(append(s.out, name)))
	case unknown:
		s.unknown = slices.Sorted(slices.Values(append(s.unknown, name)))
	case other:
	}
	return s
}

// relation returns the relation in effect for a source.
func (s selection) relation(name string) relation {
	switch {
	case slices.Contains(s.out, name):
		return same
	case slices.Contains(s.unknown, name):
		return unknown
	}
	return other
}

func (s selection) equal(o selection) bool {
	return slices.Equal(s.only, o.only) && slices.Equal(s.out, o.out) && slices.Equal(s.unknown, o.unknown)
}

func (s selection) isAll() bool { return len(s.only)+len(s.out)+len(s.unknown) == 0 }

// has reports whether a source belongs to the branch.
func (s selection) has(name string) bool {
	return (len(s.only) == 0 || slices.Contains(s.only, name)) && !slices.Contains(s.out, name)
}

// passes reports whether the records of a source are taken.
func (s selection) passes(name string) bool {
	return s.has(name) && !slices.Contains(s.unknown, name)
}

// of returns the sources of a list that belong to the branch.
func (s selection) of(names []string) []string {
	if s.isAll() {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !s.has(name) })
}

// keepSelections returns the part of a configuration that a running process can take over.
// The exclusions of an output are decided once. A source may be excluded by other outputs
// than now, or that may be uncertain. It then stays as it runs, or waits for the next start
// if it is new.
func keepSelections(ctx context.Context, branches []*branch, running, wanted *config.Config) (kept *config.Config, needsRestart []string) {
	k := *wanted
	k.Sources = nil
	for _, s := range wanted.Sources {
		was, runs := named(running, s.Name)
		fits := func(b *branch) bool { return runs && isRelatedAlike(was, s) || b.keeps(ctx, s) }
		switch {
		case !slices.ContainsFunc(branches, func(b *branch) bool { return !fits(b) }):
			k.Sources = append(k.Sources, s)
			continue
		case runs:
			k.Sources = append(k.Sources, was)
		}
		needsRestart = append(needsRestart, "sources."+s.Name)
	}
	return &k, needsRestart
}

// isRelatedAlike reports whether two settings of a source read the same API server, or
// would be read in the same way.
func isRelatedAlike(a, b config.Source) bool {
	if reflect.DeepEqual(a.Settings, b.Settings) {
		return true
	}
	one := serverOf(a.Settings)
	return one != "" && one == serverOf(b.Settings)
}

// serverOf returns the address of the API server of some settings; empty if it is unknown.
func serverOf(settings source.Settings) string {
	read, reads := settings.(source.APIServer)
	if !reads {
		return ""
	}
	address, err := read.Server()
	if err != nil {
		return ""
	}
	return address
}
