package isthmus_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	originsPage = "docs/origins.md"
	notYet      = "Not there"
)

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	testName   = regexp.MustCompile(`^(Test|Fuzz)\w+$`)
	testFile   = regexp.MustCompile(`^[\w./-]+_test\.go$`)
	tableRules = regexp.MustCompile(`^[|: -]+$`)
)

// Each row of the page on origins names tests that exist, or says why there is none.
func TestOriginsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	rows := tableRows(read(t, originsPage))
	if len(rows) == 0 {
		t.Fatal("found no rows; fix this test")
	}
	for _, cells := range rows {
		for _, wrong := range wrongWithOrigin(cells, os.ReadFile) {
			t.Errorf("%s, row %q: %s", originsPage, cells[0], wrong)
		}
	}
}

// The check bites: each row is one that is wrong, and what is said of it.
func TestOriginsAreGuarded(t *testing.T) {
	t.Parallel()
	files := func(name string) ([]byte, error) {
		if name != "a/a_test.go" {
			return nil, os.ErrNotExist
		}
		return []byte("func TestThere(t *testing.T) {\nfunc TestThereToo(t *testing.T) {\n"), nil
	}
	const head = "| a complaint | what answers it | shown by |\n| --- | --- | --- |\n"
	for row, want := range map[string]string{
		"| x | y | `a/a_test.go` `TestThere` `TestThereToo` |":     "",
		"| x | y | Not there yet: for a reason |":                  "",
		"| x | y | Not there yet, but `a/a_test.go` `TestThere` |": "",
		"| x | y | `a/a_test.go` `TestTher` |":                     "there is no TestTher in a/a_test.go",
		"| x | y | `b/b_test.go` `TestThere` |":                    "there is no file b/b_test.go",
		"| x | y | `a/a_test.go` |":                                "names no test of a/a_test.go",
		"| x | y | `TestThere` |":                                  "names no file before TestThere",
		"| x | y | it is obvious |":                                "names neither a test nor a reason",
		"| x | y |  |":                                             "names neither a test nor a reason",
		"| x |  | `a/a_test.go` `TestThere` |":                     "does not say what answers it",
		"| x | y |":                                                "has 2 cells, and there are 3 columns",
	} {
		rows := tableRows(head + row + "\n")
		if len(rows) != 1 {
			t.Fatalf("%d rows are read of %s", len(rows), row)
		}
		if got := strings.Join(wrongWithOrigin(rows[0], files), "; "); got != want && !(want != "" && strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %q, want %q", row, got, want)
		}
	}
}

// tableRows are the cells of every row of every table of a page, without heads.
func tableRows(page string) [][]string {
	var rows [][]string
	inTable := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case tableRules.MatchString(line):
			inTable = true
		case inTable:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// wrongWithOrigin says what is wrong with a row: a promise or complaint, what
// answers it, and what shows that.
func wrongWithOrigin(cells []string, readFile func(string) ([]byte, error)) (wrong []string) {
	if len(cells) != 3 {
		return []string{"has " + strconv.Itoa(len(cells)) + " cells, and there are 3 columns"}
	}
	if cells[1] == "" {
		wrong = append(wrong, "does not say what answers it; write \"nothing\" if so")
	}
	file, text, tests, all := "", "", 0, 0
	unused := func() {
		if file != "" && tests == 0 {
			wrong = append(wrong, "names no test of "+file)
		}
	}
	for _, found := range quoted.FindAllStringSubmatch(cells[2], -1) {
		switch name := found[1]; {
		case testFile.MatchString(name):
			unused()
			content, err := readFile(filepath.FromSlash(name))
			if err != nil {
				return append(wrong, "there is no file "+name)
			}
			file, text, tests = name, string(content), 0
		case !testName.MatchString(name):
		case file == "":
			wrong = append(wrong, "names no file before "+name)
		default:
			tests++
			all++
			if !strings.Contains(text, "\nfunc "+name+"(") && !strings.HasPrefix(text, "func "+name+"(") {
				wrong = append(wrong, "there is no "+name+" in "+file)
			}
		}
	}
	unused()
	if all == 0 && len(wrong) == 0 && !strings.HasPrefix(cells[2], notYet) {
		wrong = append(wrong, "names neither a test nor a reason; begin with \""+notYet+" yet:\" if it is not built")
	}
	return wrong
}
