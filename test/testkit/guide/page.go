// Package guide follows pages that say how to do something: whoever writes such a
// page has a test that does what it says, word by word.
//
// A page consists of steps, its sections, and what there is to do in a step are its
// fenced blocks. A block of "sh" is done by a shell, and a block of "text" behind it
// is what it comes to print. A block of "sh terminal" is one command that goes on for
// as long as the page is followed, in a terminal of its own; one that stands there
// again is ended and started anew. A block of "sh once" fetches what a machine
// lacks: a reader does it if [Reader.FetchEnv] says how. Every other block is a file,
// whose name stands in its first line as a comment.
//
// A [Reader] belongs to the goroutine of its test.
package guide

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Page is one, as steps that somebody follows.
type Page struct {
	Path  string
	Steps []Step
}

// Step is a section of the page, and what there is to do in it.
type Step struct {
	Title  string
	Blocks []Block
}

// Block is a fenced part of a step.
type Block struct{ Language, Text string }

// Lines are those of a block, without spaces that only set it out, and without the
// ellipsis for what the page leaves away.
func (b Block) Lines() (lines []string) {
	for line := range strings.Lines(b.Text) {
		lines = append(lines, strings.TrimSuffix(strings.Join(strings.Fields(line), " "), " …"))
	}
	return lines
}

// File is the name that a block has in its first line, as a comment.
func (b Block) File() string {
	name, _, _ := strings.Cut(b.Text, "\n")
	for _, mark := range []string{"# ", "// ", "<!-- "} {
		name = strings.TrimPrefix(name, mark)
	}
	return strings.TrimSuffix(name, " -->")
}

// Read reads a page. Values of the example in it are replaced by those of the test.
func Read(t testing.TB, path string, values ...string) Page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Page{path, parse(strings.NewReplacer(values...).Replace(string(text)))}
}

// Step returns the one with a title.
func (p Page) Step(t testing.TB, title string) Step {
	t.Helper()
	for _, s := range p.Steps {
		if s.Title == title {
			return s
		}
	}
	t.Fatalf("%s has no step %q: change this test with it; its steps are %q", p.Path, title, p.Titles())
	return Step{}
}

// Titles are those of all steps, in order.
func (p Page) Titles() (titles []string) {
	for _, s := range p.Steps {
		titles = append(titles, s.Title)
	}
	return titles
}

var (
	heading = regexp.MustCompile(`(?m)^##+ (.+)\n`)
	fenced  = regexp.MustCompile("(?ms)^```([\\w ]*)\n(.*?)^```\n") //nolint:gocritic // ^ is the beginning of a line here
)

// parse returns the sections in which there is something to do.
func parse(text string) (steps []Step) {
	ends := heading.FindAllStringSubmatchIndex(text, -1)
	for i, at := range ends {
		section := text[at[1]:]
		if i+1 < len(ends) {
			section = text[at[1]:ends[i+1][0]]
		}
		s := Step{Title: text[at[2]:at[3]]}
		for _, found := range fenced.FindAllStringSubmatch(section, -1) {
			s.Blocks = append(s.Blocks, Block{found[1], found[2]})
		}
		if len(s.Blocks) > 0 {
			steps = append(steps, s)
		}
	}
	return steps
}
