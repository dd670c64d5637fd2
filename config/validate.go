package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/output/istio"
	"github.com/isthmus-mesh/isthmus/source"
)

var sourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// validate finds what is wrong across the parts, and asks each part about
// itself. The problems have no lines yet.
func (c *Config) validate() []Problem {
	var found []Problem
	add := func(field, format string, args ...any) {
		found = append(found, Problem{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if c.Instance == "" {
		add("instance", "must not be empty; it marks what this installation owns")
	}
	if len(c.Sources) == 0 {
		add("sources", "missing; name at least one registry, such as {name: files, file: {path: ./registry}}")
	}
	named := map[string]int{}
	for i, s := range c.Sources {
		at := fmt.Sprintf("sources[%d]", i)
		switch first, twice := named[s.Name]; {
		case s.Name == "":
			add(at+".name", "missing; records and status are shown under it")
		case source.IsReserved(s.Name):
			add(at+".name", "%q is reserved: names that begin with %q are of records that are written to Isthmus itself; choose another, such as %q",
				s.Name, source.ReservedPrefix, "legacy-1")
		case !sourceName.MatchString(s.Name):
			add(at+".name", "%q must be lower-case letters, digits and dashes, such as %q", s.Name, "legacy-1")
		case twice:
			add(at+".name", "%q is the name of sources[%d] already; names are unique", s.Name, first)
		default:
			named[s.Name] = i
		}
		if err := s.Hold.Validate(); err != nil {
			found = append(found, nested(at+".hold", err))
		}
		switch kinds := s.kinds(); len(kinds) {
		case 0:
			add(at, "names no kind of registry; add one, such as file: {path: ./registry}")
		case 1:
			if err := kinds[0].config.Validate(); err != nil {
				found = append(found, nested(at+"."+kinds[0].key, err))
			}
		default:
			add(at, "names both %s and %s; a source is one registry, so make two of it", kinds[0].key, kinds[1].key)
		}
	}
	found = append(found, c.validateOutputs()...)
	for i, s := range c.Sources {
		if s.File != nil && c.Store.DataDir != "" && inside(c.Store.DataDir, s.File.Path) {
			add("store.dataDir", "lies in the folder that sources[%d] reads, which would follow every write to it; name a folder beside it", i)
		}
	}
	if err := c.Admin.Validate(); err != nil {
		found = append(found, nested("admin", err))
	}
	if !oneOf(c.Log.Level, "debug", "info", "warn", "error") {
		add("log.level", "%q is none of debug, info, warn, error", c.Log.Level)
	}
	if !oneOf(c.Log.Format, "text", "json") {
		add("log.format", "%q is none of text, json", c.Log.Format)
	}
	return found
}

func (c *Config) validateOutputs() (found []Problem) {
	if c.Outputs == (Outputs{}) {
		return []Problem{{Field: "outputs", Reason: "none is switched on; add one, such as xds: {listen: 127.0.0.1:15010}"}}
	}
	if o := c.Outputs.XDS; o != nil {
		if err := o.Validate(); err != nil {
			found = append(found, nested("outputs.xds", err))
		}
	}
	if o := c.Outputs.Istio; o != nil {
		found = append(found, c.validateIstio(o)...)
	}
	return found
}

func (c *Config) validateIstio(o *istio.Config) (found []Problem) {
	if err := o.Validate(); err != nil {
		found = append(found, nested("outputs.istio", err))
	}
	if c.Instance != "" && !istio.IsInstance(c.Instance) {
		found = append(found, Problem{Field: "instance", Reason: fmt.Sprintf("%q is to be the value of a label: "+
			"use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", c.Instance)})
	}
	for i, name := range o.Sources {
		if !slices.ContainsFunc(c.Sources, func(s Source) bool { return s.Name == name }) {
			found = append(found, Problem{
				Field:  fmt.Sprintf("outputs.istio.sources[%d]", i),
				Reason: fmt.Sprintf("no source is named %q; name one of this file", name),
			})
		}
	}
	return found
}

// inside reports whether a path is a folder or lies below it, as far as their
// names tell.
func inside(path, folder string) bool {
	relative, err := filepath.Rel(folder, path)
	return folder != "" && err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// check finds what is wrong with the files that the parts cannot do without.
func (c *Config) check() []Problem {
	var found []Problem
	if c.Outputs.XDS != nil {
		if err := c.Outputs.XDS.Check(); err != nil {
			found = append(found, nested("outputs.xds", err))
		}
	}
	if c.Outputs.Istio != nil {
		if err := c.Outputs.Istio.Check(); err != nil {
			found = append(found, nested("outputs.istio", err))
		}
	}
	if err := c.Admin.Check(); err != nil {
		found = append(found, nested("admin", err))
	}
	return found
}

// Warnings lists what is valid and an operator should know of all the same.
func (c *Config) Warnings() (list []string) {
	for i, s := range c.Sources {
		for _, warning := range s.Warnings() {
			list = append(list, fmt.Sprintf("sources[%d].%s", i, warning))
		}
	}
	if c.Outputs.XDS != nil {
		list = append(list, c.Outputs.XDS.Warnings()...)
	}
	return append(list, c.Admin.Warnings()...)
}

// nested turns what a part says of itself, "field: reason", into a problem.
func nested(at string, err error) Problem {
	field, reason, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		return Problem{Field: at, Reason: err.Error()}
	}
	return Problem{Field: at + "." + field, Reason: reason}
}

func oneOf(s string, values ...string) bool { return slices.Contains(values, s) }
