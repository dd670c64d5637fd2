package istio_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is the guide to migration, as steps that somebody follows.
type page struct {
	config block // isthmus.yaml
	steps  []step
}

// step is a section of the page, and what there is to do in it.
type step struct {
	title  string
	blocks []block
}

// block is a fenced part of a step: sh is done, yaml is a file, and text is what was
// printed before it.
type block struct{ language, text string }

// file is the name that a block of YAML has in its first line, as a comment.
func (b block) file() string {
	name, _, _ := strings.Cut(b.text, "\n")
	return strings.TrimPrefix(name, "# ")
}

// lines are those of a block, without spaces that only set it out, and without the
// ellipsis for what the page leaves away.
func (b block) lines() (lines []string) {
	for line := range strings.Lines(b.text) {
		lines = append(lines, strings.TrimSuffix(strings.Join(strings.Fields(line), " "), " …"))
	}
	return lines
}

const guide = "docs/migrate-from-servicecenter-istio.md"

// readGuide reads the page. Values of the example in it are replaced by those of
// the test.
func readGuide(t *testing.T, values ...string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programs.Repository, filepath.FromSlash(guide)))
	if err != nil {
		t.Fatal(err)
	}
	return parsePage(strings.NewReplacer(values...).Replace(string(text)))
}

var (
	heading = regexp.MustCompile(`(?m)^##+ (.+)\n`)
	fenced  = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```\n") //nolint:gocritic // ^ is the beginning of a line here
)

func parsePage(text string) (p page) {
	ends := heading.FindAllStringSubmatchIndex(text, -1)
	for i, at := range ends {
		section := text[at[1]:]
		if i+1 < len(ends) {
			section = text[at[1]:ends[i+1][0]]
		}
		s := step{title: text[at[2]:at[3]]}
		for _, found := range fenced.FindAllStringSubmatch(section, -1) {
			s.blocks = append(s.blocks, block{found[1], found[2]})
		}
		switch {
		case s.title == "Settings" && len(s.blocks) == 1:
			p.config = s.blocks[0]
		case len(s.blocks) > 0:
			p.steps = append(p.steps, s)
		}
	}
	return p
}
