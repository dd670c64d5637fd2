package yamlpos_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// hungry are texts that take the most memory for their size, however much is repeated.
var hungry = map[string]func(n int) string{
	"a list of letters":        func(n int) string { return strings.Repeat("- a\n", n) },
	"lists in lists":           func(n int) string { return strings.Repeat("- - - - - - - -\n", n/8) },
	"a map of letters":         func(n int) string { return strings.Repeat("a: b\n", n) },
	"keys without values":      func(n int) string { return strings.Repeat("? a\n", n) },
	"a list in brackets":       func(n int) string { return "[" + strings.Repeat("a,", n) + "a]" },
	"a map in braces":          func(n int) string { return "{" + strings.Repeat("a,", n) + "a}" },
	"small maps in brackets":   func(n int) string { return "[" + strings.Repeat("{a},", n/2) + "a]" },
	"a list of numbers":        func(n int) string { return "[" + strings.Repeat("1,", n) + "1]" },
	"empty maps":               func(n int) string { return "[" + strings.Repeat("{},", n) + "1]" },
	"one key again":            func(n int) string { return `{` + strings.Repeat(`"a":1,`, n) + `"a":1}` },
	"tags":                     func(n int) string { return strings.Repeat("- !x a\n", n) },
	"comments":                 func(n int) string { return strings.Repeat("#\n", n) + "- a\n" },
	"comments between entries": func(n int) string { return strings.Repeat("#\na: b\n", n/2) },
	"a list by many aliases": func(n int) string {
		return "a: &a [" + strings.Repeat("x,", n/10) + "]\nb:\n" + strings.Repeat("- *a\n", n/5)
	},
	"aliases of aliases": func(n int) string {
		text := "- &a0 [x,x,x,x,x,x,x,x,x,x]\n"
		for _, level := range []string{"0", "1", "2", "3", "4", "5", "6"} {
			text += "- &a" + string(level[0]+1) + " [" + strings.TrimSuffix(strings.Repeat("*a"+level+",", 10), ",") + "]\n"
		}
		return text + "# " + strings.Repeat("x", n) + "\n"
	},
}

// Whatever a text says, reading it takes no more than so many times its size: what is
// allowed for it, and as much again, as all that was ever allocated counts here.
func TestMemoryIsBoundedByTheSizeOfTheText(t *testing.T) {
	for name, text := range hungry {
		for _, n := range []int{1 << 12, 1 << 15, 1 << 18} {
			text := []byte(text(n))
			var broken *yamlpos.Problem
			took := allocated(func() {
				for doc := range yamlpos.Documents(text) {
					broken = doc.Broken
				}
			})
			if most := 2 * yamlpos.Allowance(len(text)); took > most {
				t.Errorf("%s, %d bytes: %d MiB were allocated, more than %d (%+v)", name, len(text), took>>20, most>>20, broken)
			}
			if n == 1<<18 && broken != nil && !strings.Contains(broken.Reason, "MiB are allowed: split it") {
				t.Errorf("%s: the reason is %q", name, broken.Reason)
			}
		}
	}
}

// What anybody writes is read, however much there is of it.
func TestUsualDocumentsHaveEnoughMemory(t *testing.T) {
	entry := "  - address: 10.0.0.1\n    ports:\n      http: 8080\n    labels: {app: reviews, version: v1}\n"
	shared := "  - address: 10.0.0.1\n    labels: *l\n"
	labels := "l: &l {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10, k: 11, m: 12, n: 13, o: 14, p: 15}\n"
	applied := "  - note: |\n      " + strings.Repeat(`{"address":"10.0.0.1","weight":1},`, 10) + "\n    address: 10.0.0.1\n    ports:\n      http: 8080\n"
	for name, text := range map[string]string{
		"endpoints":                   "spec:\n  endpoints:\n" + strings.Repeat(entry, 10_000),
		"labels of thousands":         labels + "spec:\n  endpoints:\n" + strings.Repeat(shared, 4096),
		"what kubectl notes, as JSON": "spec:\n  endpoints:\n" + strings.Repeat(applied, 2_000),
		"a list in JSON":              `{"items":[` + strings.Repeat(`{"address":"10.0.0.1","ports":{"http":8080},"labels":{"app":"reviews"}},`, 20_000) + `{}]}`,
	} {
		for doc := range yamlpos.Documents([]byte(text)) {
			if doc.Broken != nil || len(doc.Root.Problems()) > 0 {
				t.Errorf("%s, %d bytes: %+v, %v", name, len(text), doc.Broken, doc.Root.Problems())
			}
		}
	}
}

// A reader that has less memory for a document gets none that takes more.
func TestReaderSaysHowMuchMemoryThereIs(t *testing.T) {
	text := []byte("a: 1\n---\n" + strings.Repeat("name: value\n", 10_000) + "---\nb: 2\n")
	var lines []int
	for doc := range yamlpos.DocumentsWithin(text, 1<<20) {
		if doc.Broken == nil {
			continue
		}
		lines = append(lines, doc.Broken.Line)
		if !strings.Contains(doc.Broken.Reason, "1 MiB are allowed: split it into several documents") {
			t.Errorf("the reason is %q", doc.Broken.Reason)
		}
	}
	if len(lines) != 1 || lines[0] != 2 {
		t.Errorf("broken are the documents on lines %v", lines)
	}
}

// allocated counts the bytes that were ever allocated meanwhile, by whomever.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
