package config

import (
	"fmt"
	"iter"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/secrets/files"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// findings are problems without lines.
type findings []Problem

func (f *findings) add(field, format string, args ...any) {
	*f = append(*f, Problem{Field: field, Reason: fmt.Sprintf(format, args...)})
}

// addAll adds the errors of a part: "field: reason", joined.
func (f *findings) addAll(at string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // a wrapped one is one error
		for _, e := range joined.Unwrap() {
			f.addAll(at, e)
		}
		return
	}
	field, reason, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		f.add(at, "%s", err.Error())
		return
	}
	f.add(at+"."+field, "%s", reason)
}

// validate finds faults across the parts, and validates each part. The document tells the
// settings that it contains from defaults.
func (c *Config) validate(root *yamlpos.Node) []Problem {
	var f findings
	validateInstance(c.Instance, c.RootNamespace, &f)
	c.validateSources(&f)
	validateSplits(c.Splits, names(c.Sources, func(s Source) string { return s.Name }), hostSettingsOf(c.Outputs), &f)
	c.validateOutputs(&f)
	c.validateFolders(&f)
	c.validateAddresses(root, &f)
	f.addAll("identity", c.Identity.Validate())
	validateMutual(c.Outputs.Of("xds"), c.Identity.SendsCertificates(), &f)
	f.addAll("admin", c.Admin.Validate())
	c.Log.validate(&f)
	return f
}

func (l Log) validate(f *findings) {
	if !oneOf(l.Level, "debug", "info", "warn", "error") {
		f.add("log.level", "%q is none of debug, info, warn, error", l.Level)
	}
	if !oneOf(l.Format, "text", "json") {
		f.add("log.format", "%q is none of text, json", l.Format)
	}
}

func validateInstance(instance, root string, f *findings) {
	switch {
	case instance == "":
		f.add("instance", "must not be empty; it marks what this installation owns")
	case len(validation.IsValidLabelValue(instance)) > 0:
		f.add("instance", "%q is to be the value of a label: "+
			"use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", instance)
	}
	if root != "" && len(validation.IsDNS1123Label(root)) > 0 {
		f.add("rootNamespace", "%q is not a namespace; use at most 63 lower-case letters, digits and dashes, such as istio-system", root)
	}
}

func (c *Config) validateSources(f *findings) {
	if len(c.Sources) == 0 {
		f.add("sources", "missing; name at least one registry, such as {name: files, file: {path: ./registry}}")
	}
	first := map[string]int{}
	for i, s := range c.Sources {
		at := fmt.Sprintf("sources[%d]", i)
		if of, twice := first[s.Name]; twice && s.Name != "" {
			f.add(at+".name", "%q is the name of sources[%d] already; names are unique", s.Name, of)
		} else {
			first[s.Name] = i
			validateName(f, at, s.Name)
		}
		f.addAll(at+".hold", s.Hold.Validate())
		f.addAll(at+".only", s.Only.Validate())
		f.addAll(at, s.LocalAddresses.Validate())
		f.addAll(at, s.Network.Validate())
		f.addAll(at+".owns", s.Owns.Validate())
		switch {
		case s.Settings == nil:
			f.add(at, "names no kind of registry; add one, such as file: {path: ./registry}")
		case len(s.others) > 0:
			f.add(at, "names both %s and %s; a source is one registry, so make two of it", s.Kind, s.others[0])
		default:
			f.addAll(at+"."+s.Kind, s.Settings.Validate())
		}
	}
}

// reservedPrefix begins names that no source in a configuration can have, because records
// under such a name would be Isthmus's own.
const reservedPrefix = "isthmus."

func validateName(f *findings, at, name string) {
	switch {
	case name == "":
		f.add(at+".name", "missing; records and status are shown under it")
	case strings.HasPrefix(name, reservedPrefix):
		f.add(at+".name", "%q is reserved: names that begin with %q are of records that are written to Isthmus itself; choose another, such as %q",
			name, reservedPrefix, "legacy-1")
	case len(validation.IsDNS1123Label(name)) > 0:
		f.add(at+".name", "%q must be at most 63 lower-case letters, digits and dashes, such as %q", name, "legacy-1")
	}
}

func (c *Config) validateOutputs(f *findings) {
	if len(c.Outputs) == 0 {
		f.add("outputs", "none is switched on; add one, such as xds: {listen: 127.0.0.1:15010}")
	}
	for _, o := range c.Outputs {
		at := "outputs." + o.Kind
		f.addAll(at, o.Settings.Validate())
		written, ok := o.Settings.(output.APIServer)
		if !ok {
			continue
		}
		for i, name := range written.Only() {
			if !slices.ContainsFunc(c.Sources, func(s Source) bool { return s.Name == name }) {
				f.add(fmt.Sprintf("%s.sources[%d]", at, i), "no source is named %q; name one of this file", name)
			}
		}
	}
}

// validateFolders checks that no written folder is also read.
func (c *Config) validateFolders(f *findings) {
	for i, s := range c.Sources {
		follows, ok := s.Settings.(*file.Config)
		if ok && c.Store.DataDir != "" && inside(c.Store.DataDir, follows.Folder()) {
			f.add("store.dataDir", "lies in the folder that sources[%d] reads, which would follow every write to it; name a folder beside it", i)
		}
	}
}

// inside reports whether a path is a folder or below it, by their names alone.
func inside(path, folder string) bool {
	relative, err := filepath.Rel(folder, path)
	return folder != "" && err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// validateAddresses finds two parts that listen on one address. The fault is at the field
// that the document contains: the later one of two.
func (c *Config) validateAddresses(root *yamlpos.Node, f *findings) {
	type listener struct{ field, address string }
	var before []listener
	for field, address := range c.listeners() {
		before = append(before, listener{field, address})
	}
	for i, l := range before {
		for _, other := range before[:i] {
			if !sameAddress(l.address, other.address) {
				continue
			}
			at, taken := l, other
			if !root.Has(at.field) {
				at, taken = taken, at
			}
			f.add(at.field, "%q conflicts with %s; choose different ports", at.address, described(root, taken.field, taken.address))
		}
	}
}

// described names a field and its value for an error at another field.
func described(root *yamlpos.Node, field, value string) string {
	if root.Has(field) {
		return fmt.Sprintf("%s (%s)", field, value)
	}
	return fmt.Sprintf("%s (default %s)", field, value)
}

// listeners yields the fields with listen addresses, with the address of each.
func (c *Config) listeners() iter.Seq2[string, string] {
	return func(yield func(field, address string) bool) {
		for _, o := range c.Outputs {
			if l, ok := o.Settings.(output.Listener); ok && !yield("outputs."+o.Kind+".listen", l.ListenAddress()) {
				return
			}
		}
		yield("admin.listen", c.Admin.Listen)
	}
}

// Listeners returns the listen addresses by their field, such as "outputs.xds.listen".
func (c *Config) Listeners() map[string]string { return maps.Collect(c.listeners()) }

// sameAddress reports whether two addresses cannot both be listened on.
func sameAddress(a, b string) bool {
	if a == b && strings.HasPrefix(a, "unix://") {
		return true
	}
	host, port, err := net.SplitHostPort(a)
	otherHost, otherPort, otherErr := net.SplitHostPort(b)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	all := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return host == otherHost || all(host) || all(otherHost)
}

// check finds faults of the files that outputs and the admin API require.
func (c *Config) check() []Problem {
	var f findings
	for _, o := range c.Outputs {
		f.addAll("outputs."+o.Kind, o.Settings.Check())
	}
	f.addAll("identity", c.Identity.Check())
	f.addAll("admin", c.Admin.Check())
	return f
}

// checkCertificates finds unusable certificates for Envoys. A running program serves the others.
func checkCertificates(c *identity.Config) []Problem {
	var f findings
	if dir := c.Files.Dir; dir != "" {
		f.addAll("identity.files", files.Check(dir, c.Domain()))
	}
	return f
}

// checkSources finds missing files and folders of sources.
func (c *Config) checkSources() []Problem {
	var f findings
	for i, s := range c.Sources {
		if s.Settings != nil {
			f.addAll(fmt.Sprintf("sources[%d].%s", i, s.Kind), s.Settings.Check())
		}
	}
	return f
}

// Warnings lists the risks of a valid configuration.
func (c *Config) Warnings() (list []string) {
	for i, s := range c.Sources {
		for _, warning := range s.Warnings() {
			list = append(list, fmt.Sprintf("sources[%d].%s", i, warning))
		}
		for j, pattern := range s.Owns.Hosts {
			if taken := c.takenFrom(i, pattern); len(taken) > 0 {
				list = append(list, fmt.Sprintf("sources[%d].owns.hosts[%d]: %s", i, j, givenTo(s.Name, pattern, taken)))
			}
		}
	}
	for _, o := range c.Outputs {
		list = append(list, o.Settings.Warnings()...)
	}
	return slices.Concat(list, c.Identity.Warnings(c.RootNamespace), warnOfLocality(c.Splits, hostSettingsOf(c.Outputs)), c.Admin.Warnings())
}

// givenTo warns of hosts that a source takes from others.
func givenTo(source, pattern string, others []string) string {
	return fmt.Sprintf("%q goes to %s whatever the order and the namespaces, and is taken from the sources that may list it as well: %s",
		pattern, source, strings.Join(others, ", "))
}

func oneOf(s string, values ...string) bool { return slices.Contains(values, s) }
