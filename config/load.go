package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/bounded"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// Error is all faults of a configuration file.
type Error struct {
	File     string
	Problems []Problem
}

// Problem is one fault.
type Problem struct {
	Line   int
	Field  string // "sources[0].file.path"; empty for the file as a whole
	Reason string // the fault and how to fix it
}

// Error lists the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = e.line(p)
	}
	return strings.Join(lines, "\n")
}

func (e *Error) line(p Problem) string {
	var b strings.Builder
	b.WriteString(e.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Reason)
	return b.String()
}

// Load reads a configuration file, and checks the files that its outputs require. Relative
// paths in it are relative to the file's folder. The error is an [*Error] that lists all
// faults.
func Load(path string) (*Config, error) { return Known().Load(path) }

// Load is [Load] for other kinds than the [Known] ones.
func (k Kinds) Load(path string) (*Config, error) { return k.load(path, bounded.File, (*Config).check) }

// Check is [Load], and also checks that the inputs of all sources exist, and all certificates for
// Envoys are usable. A running program waits for them; a person wants to know.
func Check(path string) (*Config, error) {
	return Known().load(path, bounded.File, func(c *Config) []Problem {
		return slices.Concat(c.checkSources(), c.check(), checkCertificates(&c.Identity))
	})
}

func (k Kinds) load(path string, read func(string) ([]byte, error), check func(*Config) []Problem) (*Config, error) {
	text, err := read(path)
	if err != nil {
		return nil, &Error{path, []Problem{{Reason: fmt.Sprintf("cannot be read: %v; give the file's name with --config", cause(err))}}}
	}
	c, problems := k.parse(text, os.LookupEnv, func(c *Config) []Problem {
		c.resolve(filepath.Dir(path))
		return check(c)
	})
	if len(problems) > 0 {
		return nil, &Error{path, problems}
	}
	return c, nil
}

// Parse reads a configuration. Variables are taken from lookup, which has the
// form of [os.LookupEnv].
func Parse(text []byte, lookup func(string) (string, bool)) (*Config, []Problem) {
	return Known().parse(text, lookup, func(*Config) []Problem { return nil })
}

// parse finds syntax errors, invalid values, and the problems of more, in one pass. A field
// with a problem of one step is not reported by the next.
func (k Kinds) parse(text []byte, lookup func(string) (string, bool), more func(*Config) []Problem) (*Config, []Problem) {
	c := defaults()
	root, problems, ok := document(text)
	if !ok {
		return &c, problems
	}
	d := decoder{kinds: k, lookup: lookup}
	d.decode(root, "", &c)
	problems = append(problems, d.problems...)
	for i := range c.Sources {
		c.Sources[i].complete()
	}
	c.Outputs.takeIdentity(&c.Identity)
	validate := func(c *Config) []Problem { return c.validate(root) }
	for _, find := range []func(*Config) []Problem{validate, more} {
		known := slices.Clone(problems)
		for _, p := range placed(root, find(&c)) {
			if !slices.ContainsFunc(known, func(o Problem) bool { return within(p.Field, o.Field) }) {
				problems = append(problems, p)
			}
		}
	}
	labelSubsets(c.Splits, hostSettingsOf(c.Outputs))
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &c, problems
}

// placed sets the lines of problems by their fields.
func placed(root *yamlpos.Node, problems []Problem) []Problem {
	for i := range problems {
		problems[i].Line = root.LineOf(problems[i].Field)
	}
	return problems
}

// within reports whether a field is another or lies inside it. An unreadable field is not
// validated as well.
func within(field, other string) bool {
	return field == other || other != "" && (strings.HasPrefix(field, other+".") || strings.HasPrefix(field, other+"["))
}

// document returns the one document of a file, nil if the file is empty, and its problems;
// ok is false if it cannot be read at all.
func document(text []byte) (root *yamlpos.Node, problems []Problem, ok bool) {
	for doc := range yamlpos.Documents(text) {
		switch {
		case doc.Broken != nil:
			return nil, []Problem{{Line: doc.Broken.Line, Reason: doc.Broken.Reason}}, false
		case root != nil:
			return nil, []Problem{{Line: doc.Root.Line(), Reason: "a second document; the configuration is a single one, so remove the line ---"}}, false
		}
		root = doc.Root
	}
	for _, p := range root.Problems() {
		problems = append(problems, Problem{p.Line, p.Field, p.Reason})
	}
	return root, problems, true
}

func (c *Config) resolve(dir string) {
	if d := &c.Store.DataDir; *d != "" && !filepath.IsAbs(*d) {
		*d = filepath.Join(dir, *d)
	}
	for _, s := range c.Sources {
		if s.Settings != nil {
			place(s.Settings, dir, c.clusterDomains())
		}
	}
	for _, o := range c.Outputs {
		o.Settings.Resolve(dir)
	}
	c.Identity.Resolve(dir)
	c.Admin.resolve(dir)
}

// place tells the settings of a source which folder its paths are relative to, and which
// cluster its short names are of, if there is a single one.
func place(s source.Settings, dir string, domains []string) {
	s.Resolve(dir)
	if files, ok := s.(*file.Config); ok && len(domains) == 1 {
		files.InCluster(domains[0])
	}
}

// cause returns an error of the file system without its path, which the text already has.
func cause(err error) error {
	if pathErr, ok := err.(*os.PathError); ok { //nolint:errorlint // os.ReadFile returns it unwrapped
		return pathErr.Err
	}
	return err
}
