package app

import (
	"reflect"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/config"
)

// plan is the steps that change a running Isthmus to another configuration.
type plan struct {
	Start   []config.Source // new sources, in the order of the file
	Stop    []string        // sources that are no longer in the file
	Restart []config.Source // sources that run with other settings
	Reorder bool            // the remaining sources are merged in another order, or own other hosts
	Split   bool            // calls are divided otherwise
	Require bool            // readiness waits for others than before
	Log     bool            // the log settings change
	// NeedsRestart names the fields that cannot change in a running process.
	NeedsRestart []string
}

// planFor compares the running configuration with the wanted one.
func planFor(running, wanted *config.Config) plan {
	p := plan{Log: running.Log != wanted.Log, NeedsRestart: fixedChanges(running, wanted)}
	for _, s := range wanted.Sources {
		switch was, ok := named(running, s.Name); {
		case !ok:
			p.Start = append(p.Start, s)
		case !sameSettings(was, s):
			p.Restart = append(p.Restart, s)
		}
	}
	for _, s := range running.Sources {
		if _, stays := named(wanted, s.Name); !stays {
			p.Stop = append(p.Stop, s.Name)
		}
	}
	p.Reorder = !slices.Equal(common(running, wanted), common(wanted, running)) || slices.ContainsFunc(wanted.Sources, func(s config.Source) bool {
		was, ok := named(running, s.Name)
		return ok && !slices.Equal(was.Owns.Hosts, s.Owns.Hosts)
	})
	p.Split = !reflect.DeepEqual(running.Splits, wanted.Splits)
	wasRequired, wasOptional := requirements(running)
	required, optional := requirements(wanted)
	slices.Sort(wasRequired)
	slices.Sort(wasOptional)
	p.Require = !slices.Equal(wasRequired, slices.Sorted(slices.Values(required))) ||
		!slices.Equal(wasOptional, slices.Sorted(slices.Values(optional)))
	return p
}

// unchanged reports whether there is nothing to do.
func (p plan) unchanged() bool {
	return len(p.Start)+len(p.Stop)+len(p.Restart) == 0 && !p.Reorder && !p.Split && !p.Require && !p.Log
}

func named(c *config.Config, name string) (config.Source, bool) {
	i := slices.IndexFunc(c.Sources, func(s config.Source) bool { return s.Name == name })
	if i < 0 {
		return config.Source{}, false
	}
	return c.Sources[i], true
}

// sameSettings reports whether a source would be read in the same way. Readiness and owned
// hosts do not affect that.
func sameSettings(a, b config.Source) bool {
	a.Name, a.Required, a.Owns = b.Name, b.Required, b.Owns
	return reflect.DeepEqual(a, b)
}

// common names the sources of c that o has as well, in the order of c.
func common(c, o *config.Config) []string {
	return slices.DeleteFunc(names(c), func(name string) bool { _, ok := named(o, name); return !ok })
}

func names(c *config.Config) []string {
	list := make([]string, len(c.Sources))
	for i, s := range c.Sources {
		list[i] = s.Name
	}
	return list
}

func requirements(c *config.Config) (required, optional []string) {
	for _, s := range c.Sources {
		if s.IsRequired() {
			required = append(required, s.Name)
		} else {
			optional = append(optional, s.Name)
		}
	}
	return required, optional
}

// changeable are the parts of a configuration that a running process follows. All other
// parts, present and future, need a restart.
var changeable = []string{"sources", "splits", "log"}

// fixedChanges names the fields, by path, that differ and cannot change.
func fixedChanges(running, wanted *config.Config) []string {
	return differing("", reflect.ValueOf(*running), reflect.ValueOf(*wanted))
}

func differing(at string, a, b reflect.Value) []string {
	if outputs, ok := reflect.TypeAssert[config.Outputs](a); ok {
		others, _ := reflect.TypeAssert[config.Outputs](b)
		return differingOutputs(at, outputs, others)
	}
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if a.Kind() != reflect.Struct {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return nil
		}
		return []string{at}
	}
	var fields []string
	for _, f := range reflect.VisibleFields(a.Type()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || at == "" && slices.Contains(changeable, key) {
			continue
		}
		if at != "" {
			key = at + "." + key
		}
		fields = append(fields, differing(key, a.FieldByIndex(f.Index), b.FieldByIndex(f.Index))...)
	}
	return fields
}

// differingOutputs compares the outputs kind by kind.
func differingOutputs(at string, a, b config.Outputs) (fields []string) {
	var kinds []string
	for _, o := range slices.Concat(a, b) {
		if !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
	}
	for _, kind := range kinds {
		was, is := a.Of(kind), b.Of(kind)
		if was == nil || is == nil {
			fields = append(fields, at+"."+kind)
			continue
		}
		fields = append(fields, differing(at+"."+kind, reflect.ValueOf(was), reflect.ValueOf(is))...)
	}
	return fields
}

// transition returns the merge order while sources that are no longer wanted still have
// records. Each keeps its place behind the same source as before, so that no other source
// takes over before its successor is there.
func transition(present, wanted []string) []string {
	order := slices.Clone(wanted)
	for i, name := range present {
		if slices.Contains(order, name) {
			continue
		}
		at := 0
		if i > 0 {
			at = slices.Index(order, present[i-1]) + 1
		}
		order = slices.Insert(order, at, name)
	}
	return order
}
