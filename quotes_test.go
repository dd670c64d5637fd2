package isthmus_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The pages that teach an addition quote the worked example, which is compiled and
// run: every block of Go stands in its file word for word.
func TestPagesQuoteTheirExamples(t *testing.T) {
	t.Parallel()
	for _, page := range []struct{ path, example, tests string }{
		{"source/README.md", "test/additions/hostlist/hostlist.go", "test/additions/hostlist/hostlist_test.go"},
		{"output/README.md", "test/additions/tally/tally.go", ""},
	} {
		blocks := goBlocks(read(t, page.path))
		if len(blocks) < 3 {
			t.Errorf("%s quotes %d blocks of %s; it should teach by them", page.path, len(blocks), page.example)
		}
		example := read(t, page.example)
		if page.tests != "" {
			example += read(t, page.tests)
		}
		for _, block := range blocks {
			if err := quotes(block, example); err != nil {
				t.Errorf("%s: %v; copy it anew from %s", page.path, err, page.example)
			}
		}
	}
}

func TestQuotesAreGuarded(t *testing.T) {
	t.Parallel()
	const example = "package p\n\nfunc f() {\n\tg()\n}\n"
	for block, same := range map[string]bool{
		"func f() {\n\tg()\n}\n": true, "\tg()\n": true, "\tg(1)\n": false, "g()\n": false, "func f() {\n}\n": false, "}": false, "": false,
	} {
		if err := quotes(block, example); (err == nil) != same {
			t.Errorf("%q is a quote: %t, want %t", block, err == nil, same)
		}
	}
	if got := goBlocks("a\n```go\nx\n```\n```\ny\n```\n```go\nz\n```\n"); len(got) != 2 || got[0] != "x\n" || got[1] != "z\n" {
		t.Errorf("blocks of Go are %q", got)
	}
}

var goBlock = regexp.MustCompile("(?s)(?:^|\n)```go\n(.*?\n)```(?:\n|$)")

func goBlocks(page string) (blocks []string) {
	for _, found := range goBlock.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

// quotes says which line of a block is the first that the example has not got
// there. A block is whole lines.
func quotes(block, example string) error {
	if strings.HasSuffix(block, "\n") && strings.Contains("\n"+example, "\n"+block) {
		return nil
	}
	lines := strings.SplitAfter(block, "\n")
	for i := range lines {
		if begin := strings.Join(lines[:i+1], ""); !strings.Contains("\n"+example, "\n"+begin) {
			return fmt.Errorf("line %d of a block is not in the example: %q", i+1, strings.TrimRight(lines[i], "\n"))
		}
	}
	return fmt.Errorf("a block is no whole lines: %q", block)
}
