package xds_test

import (
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The reference says which points are kept, and the page of proofs names tests of each.
func TestReferencePageNamesTestsThatExist(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(root + "/docs/reference/xds.md")
	if err != nil {
		t.Fatal(err)
	}
	proofs := proofsOfPoints(t, root+"/docs/proofs.md")
	tests := testsBelow(t, os.DirFS(root))
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| (kept|not applicable) \|`)
	name := regexp.MustCompile("`(Test\\w+)`")
	rows := row.FindAllStringSubmatch(string(page), -1)
	for i, cells := range rows {
		if cells[1] != strconv.Itoa(i+1) {
			t.Fatalf("point %s stands where %d should", cells[1], i+1)
		}
		named := name.FindAllStringSubmatch(proofs[cells[1]], -1)
		if cells[3] == "kept" && len(named) == 0 {
			t.Errorf("point %s is kept, and no test says so: %s", cells[1], cells[2])
		}
		for _, found := range named {
			if !tests[found[1]] {
				t.Errorf("point %s: there is no %s", cells[1], found[1])
			}
		}
	}
	if len(rows) != 72 {
		t.Errorf("the page has %d points", len(rows))
	}
}

// proofsOfPoints reads the rows of the page of proofs that are about points, by number.
func proofsOfPoints(t *testing.T, file string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	proofs := map[string]string{}
	for _, cells := range regexp.MustCompile(`(?m)^\| (\d+): [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(string(page), -1) {
		proofs[cells[1]] = cells[2]
	}
	return proofs
}

// testsBelow lists the names of all tests in a tree.
func testsBelow(t *testing.T, tree fs.FS) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	names := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, found := range declared.FindAllSubmatch(text, -1) {
			names[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
