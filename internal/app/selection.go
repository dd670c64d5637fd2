package app

import (
	"context"
	"reflect"
	"slices"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
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

// isSelective reports whether an output names its sources.
func isSelective(settings output.Settings) bool {
	written, writes := settings.(output.APIServer)
	return writes && len(written.Only()) > 0
}

// selectionOf returns the sources that an output takes: the named ones, or otherwise all
// that do not read the API server that it writes to.
func selectionOf(ctx context.Context, settings output.Settings, c *config.Config) (s selection, found []related) {
	written, writes := settings.(output.APIServer)
	switch {
	case !writes:
		return selection{}, nil
	case isSelective(settings):
		return selection{only: slices.Sorted(slices.Values(written.Only()))}, nil
	}
	found = relate(ctx, written, c.Sources)
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
	case unknown, unsaid:
		s.unknown = slices.Sorted(slices.Values(append(s.unknown, name)))
	case other:
	}
	return s
}

// assume returns the selection in which every source of an unidentified cluster passes. A
// rehearsal uses it: it writes nothing and does not wait for later answers.
func (s selection) assume(found []related) selection {
	for i := range found {
		if found[i].relation == unsaid {
			found[i].relation = other
			s = s.with(found[i].name, other)
		}
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

// target is an output that takes all sources except those that read the cluster it writes
// to.
type target struct {
	written output.APIServer
	branch  *branch
}

// keepSelections returns the part of a configuration that a running process can take over.
// The exclusions of an output are decided once. A source may be excluded by other outputs
// than now, or that may be uncertain. It then stays as it runs, or waits for the next start
// if it is new.
func keepSelections(ctx context.Context, targets []target, running, wanted *config.Config) (kept *config.Config, needsRestart []string) {
	k := *wanted
	k.Sources = nil
	for _, s := range wanted.Sources {
		was, runs := named(running, s.Name)
		fits := func(t target) bool { return runs && isRelatedAlike(was, s) || t.keeps(ctx, s) }
		switch {
		case !slices.ContainsFunc(targets, func(t target) bool { return !fits(t) }):
			k.Sources = append(k.Sources, s)
			continue
		case runs:
			k.Sources = append(k.Sources, was)
		}
		needsRestart = append(needsRestart, "sources."+s.Name)
	}
	return &k, needsRestart
}

// keeps reports whether a source, which is new or reads another API server than before, may
// run beside the output.
func (t target) keeps(ctx context.Context, s config.Source) bool {
	now := t.branch.selection().relation(s.Name)
	if now == unknown {
		return true // its records do not pass before the relation is known
	}
	found := other
	for _, one := range relate(ctx, t.written, []config.Source{s}) {
		found = one.relation
	}
	return found == now
}

// isRelatedAlike reports whether two settings of a source read the same API server, or
// would be read in the same way.
func isRelatedAlike(a, b config.Source) bool {
	if reflect.DeepEqual(a.Settings, b.Settings) {
		return true
	}
	one, two := locate(a.Settings), locate(b.Settings)
	return one.address != "" && one.address == two.address
}
