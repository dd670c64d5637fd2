package isthmus_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostWords is how many words a cell of a table has at most, in a page for users.
const mostWords = 25

// forContributors are pages in which tests are named and tables are dense. The
// decisions in docs/design are among them.
var forContributors = []string{"docs/architecture.md", originsPage, "docs/performance.md"}

// denser are pages for users that have longer cells, each with the number of them.
// The numbers may only fall.
var denser = map[string]int{
	"docs/operations/README.md": 16,
	"docs/reference/admin.md":   13,
	"docs/reference/metrics.md": 2,
}

// namingTests are pages for users that name tests.
var namingTests = []string{"docs/reference/admin.md"}

var (
	cellBorder = regexp.MustCompile(`(^|[^\\])\|`)
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	namesTest  = regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w+`)
)

func TestPagesForUsersAreReadable(t *testing.T) {
	t.Parallel()
	for _, page := range pagesForUsers(t) {
		text := withoutCode(read(t, page))
		if named := namesTest.FindString(text); named != "" && !slices.Contains(namingTests, page) {
			t.Errorf("%s names %s; pages for users name no tests", page, named)
		}
		long := longCells(text)
		if len(long) > denser[page] {
			t.Errorf("%s: these cells have more than %d words; split them, or make a list of the table:\n  %s", page, mostWords, strings.Join(long, "\n  "))
		}
		if len(long) < denser[page] {
			t.Errorf("%s has %d long cells; lower its number in this test", page, len(long))
		}
	}
}

func pagesForUsers(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/reference/*.md", "docs/operations/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no pages %s: %v", pattern, err)
		}
		for _, page := range found {
			if page = filepath.ToSlash(page); !slices.Contains(forContributors, page) {
				pages = append(pages, page)
			}
		}
	}
	return pages
}

// withoutCode leaves out the fenced blocks of a page.
func withoutCode(page string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code {
			b.WriteString(line)
		}
	}
	return b.String()
}

// longCells returns the cells of more than mostWords words. The target of a link
// counts for none.
func longCells(page string) (long []string) {
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") {
			continue
		}
		for _, cell := range cellBorder.Split(line, -1) {
			if len(strings.Fields(linkTarget.ReplaceAllString(cell, "]"))) > mostWords {
				long = append(long, strings.TrimSpace(cell))
			}
		}
	}
	return long
}

func TestReadabilityIsGuarded(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", mostWords)
	for cells, want := range map[string]int{
		"| a | " + words + "|":                      0,
		"| a | " + words + "more |":                 1,
		"| a | " + words + "[more](to/a/page.md) |": 1,
		"| " + words + `\| word | b |`:              1,
		words + "more":                              0,
	} {
		if got := len(longCells(cells)); got != want {
			t.Errorf("%q has %d long cells, want %d", cells, got, want)
		}
	}
	if text := withoutCode("a\n```\nTestB\n```\nc\n"); text != "a\nc\n" {
		t.Errorf("a page without its code is %q", text)
	}
	if !namesTest.MatchString("see `TestThis`") || namesTest.MatchString("`TESTING` and Testing, latest") {
		t.Error("names of tests are not found, or are found in other words")
	}
}
