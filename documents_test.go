package isthmus_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Documents are followed under pressure: what they point at is there, and
// every word that a status can show has its line on the operator's page.

const operations = "docs/operations/README.md"

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
	metric  = regexp.MustCompile("isthmus_[a-z_]+")
)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(read(t, file), -1) {
			if err := follow(file, found[1]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// The index of decisions has each of them.
func TestEveryDecisionIsInTheIndex(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/design/README.md")
	files, _ := filepath.Glob("docs/design/0*.md")
	for _, file := range files {
		if !strings.Contains(index, "]("+filepath.Base(file)+"): ") {
			t.Errorf("docs/design/README.md has no line for %s", file)
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() && (path == "bin" || strings.HasPrefix(path, ".") && path != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("found no documents: %v", err)
	}
	return files
}

// follow looks for the target of a link in a document.
func follow(file, target string) error {
	if strings.Contains(target, "://") {
		return nil
	}
	path, anchor, _ := strings.Cut(target, "#")
	to := file
	if path != "" {
		to = filepath.Join(filepath.Dir(file), path)
	}
	if _, err := os.Stat(to); err != nil {
		return fmt.Errorf("%s leads nowhere", target)
	}
	if anchor == "" {
		return nil
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		if slug == anchor {
			return nil
		}
	}
	return fmt.Errorf("%s: no such heading in %s", target, to)
}

func TestOperatorsPageExplainsEveryState(t *testing.T) {
	t.Parallel()
	page := read(t, operations)
	for _, words := range []struct{ file, prefix string }{
		{"source/status.go", "State"},
		{"push/session/status.go", ""},
		{"admin/config.go", "Config"},
		{"output/report.go", "Writer"},
	} {
		found := constants(t, words.file, words.prefix)
		if len(found) < 2 {
			t.Errorf("%s: found no states; fix this test", words.file)
		}
		for _, word := range found {
			if !strings.Contains(page, "| `"+word+"` |") {
				t.Errorf("%s does not say what to do when something is %q (%s)", operations, word, words.file)
			}
		}
	}
}

// The table of laws names tests that exist, and has a row for each law that the
// histories hold.
func TestEveryLawHasItsTests(t *testing.T) {
	t.Parallel()
	tests := declaredTests(t)
	_, laws, _ := strings.Cut(read(t, "docs/architecture.md"), "\n## Laws\n")
	laws, _, _ = strings.Cut(laws, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| ([1-7]) \| .* \|$`).FindAllStringSubmatch(laws, -1)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d of the table of laws is about law %s", i+1, row[1])
		}
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[0], -1)
		if len(named) == 0 {
			t.Errorf("law %s names no test", row[1])
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("law %s names %s, which is no test any more", row[1], name[1])
			}
		}
	}
	if len(rows) != 7 {
		t.Errorf("the table of laws has %d rows, want 7", len(rows))
	}
}

// declaredTests are the tests of all modules in the repository.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() && (path == "bin" || strings.HasPrefix(path, ".") && path != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range declared.FindAllStringSubmatch(read(t, path), -1) {
				tests[found[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// constants are the texts of a file's exported constants that begin with a prefix.
func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 || !spec.Names[0].IsExported() || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
			word, _ := strconv.Unquote(text.Value)
			found = append(found, word)
		}
		return true
	})
	return found
}

func TestOperatorsPageNamesMetricsThatExist(t *testing.T) {
	t.Parallel()
	reference := read(t, "docs/reference/metrics.md")
	for _, name := range metric.FindAllString(read(t, operations), -1) {
		name = strings.TrimSuffix(name, "_bucket") // of a histogram
		if !strings.Contains(reference, "`"+name+"`") {
			t.Errorf("%s names %s, which docs/reference/metrics.md does not have", operations, name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
