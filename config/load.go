package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// Error is everything that is wrong with a configuration file.
type Error struct {
	File     string
	Problems []Problem
}

// Problem is one thing that is wrong.
type Problem struct {
	Line   int
	Field  string // "sources[0].file.path"; empty for the file as a whole
	Reason string // what is wrong and how to mend it
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

// Load reads a configuration file, and looks whether the certificates it names
// can be used. Relative paths in it are relative to the file's folder. The error is an [*Error] that lists everything wrong.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{path, []Problem{{Reason: fmt.Sprintf("cannot be read: %v; give the file's name with --config", cause(err))}}}
	}
	c, root, problems := parse(text, os.LookupEnv)
	if len(problems) > 0 {
		return nil, &Error{path, problems}
	}
	c.resolve(filepath.Dir(path))
	if problems := c.check(); len(problems) > 0 {
		return nil, &Error{path, placed(root, problems)}
	}
	return c, nil
}

// Parse reads a configuration. Variables are taken from lookup, which has the
// form of [os.LookupEnv].
func Parse(text []byte, lookup func(string) (string, bool)) (*Config, []Problem) {
	c, _, problems := parse(text, lookup)
	return c, problems
}

func parse(text []byte, lookup func(string) (string, bool)) (*Config, *yamlpos.Node, []Problem) {
	c := defaults()
	root, problems, ok := document(text)
	if !ok {
		return &c, root, problems
	}
	d := decoder{lookup: lookup}
	d.decode(root, "", &c)
	problems = append(problems, d.problems...)
	for i := range c.Sources {
		c.Sources[i].complete()
	}
	for _, p := range placed(root, c.validate()) {
		if !slices.ContainsFunc(problems, func(o Problem) bool { return within(p.Field, o.Field) }) {
			problems = append(problems, p)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &c, root, problems
}

// placed gives problems the lines of their fields.
func placed(root *yamlpos.Node, problems []Problem) []Problem {
	for i := range problems {
		problems[i].Line = root.LineOf(problems[i].Field)
	}
	return problems
}

// within reports whether a field is another or lies inside it: what could not
// be read is not judged as well.
func within(field, other string) bool {
	return field == other || other != "" && (strings.HasPrefix(field, other+".") || strings.HasPrefix(field, other+"["))
}

// document returns the one document of a file, nil if the file is empty, and
// what is wrong with it; ok is false if there is no reading it at all.
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
	for i := range c.Sources {
		if f := c.Sources[i].File; f != nil && !filepath.IsAbs(f.Path) {
			f.Path = filepath.Join(dir, f.Path)
		}
		if r := c.Sources[i].ServiceCenter; r != nil {
			r.Resolve(dir)
		}
	}
	if c.Outputs.XDS != nil {
		c.Outputs.XDS.Resolve(dir)
	}
	if c.Outputs.Istio != nil {
		c.Outputs.Istio.Resolve(dir)
	}
	c.Admin.resolve(dir)
}

// cause is an error of the file system without the path that stands beside it.
func cause(err error) error {
	if pathErr, ok := err.(*os.PathError); ok { //nolint:errorlint // os.ReadFile returns it unwrapped
		return pathErr.Err
	}
	return err
}
