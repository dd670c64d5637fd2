package app

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// selection says which sources a branch takes. Its zero value takes all.
type selection struct {
	only []string // their names; none means all that are not left out
	out  []string // names of those that are left out
}

// selectionOf are the sources that an output takes: those that it names, or else all
// but those that read the API server that it writes to.
func selectionOf(settings output.Settings, c *config.Config) selection {
	if named, ok := settings.(output.Selective); ok && len(named.Only()) > 0 {
		return selection{only: slices.Sorted(slices.Values(named.Only()))}
	}
	var out []string
	for _, s := range c.Sources {
		if readsTarget(settings, s.Settings) {
			out = append(out, s.Name)
		}
	}
	return selection{out: slices.Sorted(slices.Values(out))}
}

// readsTarget reports whether a source reads the API server that an output writes to. One
// that cannot be found is said to be missing by those that use it.
func readsTarget(written output.Settings, read source.Settings) bool {
	writer, writes := written.(output.APIServer)
	reader, reads := read.(source.APIServer)
	if !writes || !reads {
		return false
	}
	one, err := writer.Server()
	if err != nil {
		return false
	}
	other, err := reader.Server()
	return err == nil && one == other
}

func (s selection) equal(o selection) bool {
	return slices.Equal(s.only, o.only) && slices.Equal(s.out, o.out)
}

func (s selection) isAll() bool { return len(s.only) == 0 && len(s.out) == 0 }

// has reports whether a source is taken.
func (s selection) has(name string) bool {
	return (len(s.only) == 0 || slices.Contains(s.only, name)) && !slices.Contains(s.out, name)
}

// of are those of a list that are taken.
func (s selection) of(names []string) []string {
	if s.isAll() {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !s.has(name) })
}

// keepSelections returns a configuration as a running process can take it over. What an
// output leaves out is settled when the process starts. A source that would be left out
// by other outputs than now stays as it runs, or waits for the next start if it is new.
func keepSelections(running, wanted *config.Config) (kept *config.Config, needsRestart []string) {
	k := *wanted
	k.Sources = nil
	for _, s := range wanted.Sources {
		was, runs := named(running, s.Name)
		switch {
		case slices.Equal(leftOutBy(running, was), leftOutBy(running, s)):
			k.Sources = append(k.Sources, s)
			continue
		case runs:
			k.Sources = append(k.Sources, was)
		}
		needsRestart = append(needsRestart, "sources."+s.Name)
	}
	return &k, needsRestart
}

// leftOutBy are the kinds of the outputs that leave a source out.
func leftOutBy(c *config.Config, s config.Source) (kinds []string) {
	for _, o := range c.Outputs {
		if slices.Contains(selectionOf(o.Settings, &config.Config{Sources: []config.Source{s}}).out, s.Name) {
			kinds = append(kinds, o.Kind)
		}
	}
	return kinds
}
