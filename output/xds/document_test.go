package xds_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testsElsewhere show the points that no test is named after.
var testsElsewhere = map[string]string{
	"18": "TestPoint43_VersionsAreThoseOfContent",
	"35": "TestPoint24_ImpliedWildcardEndsWithTheFirstName",
	"39": "TestPoint1_PerTypeStreams",
	"40": "TestAssignmentsAreWhatMessagesWouldBe",
	"54": "TestPoint37_AssignmentsAreSentAlone",
	"57": "TestCallsReachEveryInstanceOfAServiceEntry",
	"58": "TestCallsReachEveryInstanceOfAServiceEntry",
	"59": "TestCallsReachEveryInstanceOfAServiceEntry",
	"60": "TestServiceOfOneNameIsResolvedByTheClient",
	"61": "TestEveryResourceIsValid",
	"63": "TestCallsReachEveryInstanceOfAServiceEntry",
	"71": "TestPoint64_UnprimedIsRejected",
}

// Each point that the reference calls kept has a test that begins with its number, or one
// that is named above.
func TestEveryPointHasItsTest(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(root + "/docs/reference/xds.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsBelow(t, os.DirFS(root))
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| (kept|not applicable) \|`).FindAllStringSubmatch(string(page), -1)
	for i, cells := range rows {
		if cells[1] != strconv.Itoa(i+1) {
			t.Fatalf("point %s is in the place of point %d", cells[1], i+1)
		}
		isTest := func(name string) bool {
			return name == testsElsewhere[cells[1]] || strings.HasPrefix(name, "TestPoint"+cells[1]+"_")
		}
		if cells[3] == "kept" && !slices.ContainsFunc(tests, isTest) {
			t.Errorf("point %s is kept, and has no test: %s", cells[1], cells[2])
		}
	}
	if len(rows) != 72 {
		t.Errorf("the page has %d points", len(rows))
	}
}

// testsBelow lists the names of all tests in a tree.
func testsBelow(t *testing.T, tree fs.FS) (names []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, found := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
