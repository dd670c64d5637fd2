package yamlpos_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// summary writes down what a file gives: each document as one line of JSON
// after its line, each problem after its own.
func summary(text string) string {
	var b strings.Builder
	for doc := range yamlpos.Documents([]byte(text)) {
		if doc.Broken != nil {
			fmt.Fprintf(&b, "%d! %s\n", doc.Broken.Line, doc.Broken.Reason)
			continue
		}
		text, first := doc.Root.JSON()
		fmt.Fprintf(&b, "%d: %s\n", first, strings.ReplaceAll(string(text), "\n", ""))
		for _, p := range doc.Root.Problems() {
			fmt.Fprintf(&b, "%d! %s: %s\n", p.Line, p.Field, p.Reason)
		}
	}
	return b.String()
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                {"", ""},
		"blank":                  {"\n  \n# comment\n---\n---\n# another\n---   \n...\n", ""},
		"null is nothing":        {"---\n~\n---\nnull\n", ""},
		"one":                    {"a: 1\n", "1: {\"a\":1}\n"},
		"several":                {"a: 1\n---\n\nb: 2\n--- # note\nc: 3\n", "1: {\"a\":1}\n4: {\"b\":2}\n6: {\"c\":3}\n"},
		"on the marker's line":   {"--- {a: 1}\n--- |\n text\n", "1: {\"a\":1}\n2: \"text\\n\"\n"},
		"directives":             {"%YAML 1.2\n---\na: 1\n...\n%YAML 1.1\n---\nb: 2\n", "3: {\"a\":1}\n7: {\"b\":2}\n"},
		"after an end marker":    {"a: 1\n...\nb: 2\n", "1: {\"a\":1}\n3: {\"b\":2}\n"},
		"no markers in scalars":  {"a: |\n ---\n  ...\nb: ----\nc: -- -\n", "1: {\"a\":\"---\\n ...\\n\",\"b\":\"----\",\"c\":\"-- -\"}\n"},
		"CRLF":                   {"a: 1\r\n---\r\nb: 2\r\n", "1: {\"a\":1}\n3: {\"b\":2}\n"},
		"byte order mark":        {"\ufeffa: 1\n", "1: {\"a\":1}\n"},
		"no line end":            {"a: 1\n---\nb: 2", "1: {\"a\":1}\n3: {\"b\":2}\n"},
		"JSON":                   {"\n{\"a\": [1, -2.5e3, true, false, null, \"x\\ny\", {}]}\n", "2: {\"a\":[1,-2.5e3,true,false,null,\"x\\ny\",{}]}\n"},
		"JSON that YAML is not":  {"{\"a\":\t\"\\ud83d\\ude00\\/\"}", "1: {\"a\":\"😀/\"}\n"},
		"JSON after a marker":    {"a: 1\n---\n[1]\n", "1: {\"a\":1}\n3: [1]\n"},
		"not quite JSON":         {"{\"a\": 1, b: [2,],}\n", "1: {\"a\":1,\"b\":[2]}\n"},
		"neighbours of a broken": {"a: 1\n---\nb: [\n---\nc: 3\n", "1: {\"a\":1}\n3! not YAML: did not find expected node content: correct the document\n5: {\"c\":3}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, summary(c.text)); diff != "" {
				t.Errorf("documents of %q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// Scalars mean what they mean to Kubernetes.
func TestScalars(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"abc": `"abc"`, "'1'": `"1"`, `"true"`: `"true"`, "!!str 1": `"1"`,
		"1": `1`, "-7": `-7`, "+7": `7`, "0x1F": `31`, "0o17": `15`, "1_000": `1000`, "18446744073709551615": `18446744073709551615`,
		"1.5": `1.5`, "-.5": `-0.5`, "1e3": `1e3`, "!!float 1": `1`,
		"true": `true`, "False": `false`, "yes": `true`, "Off": `false`, "y": `true`, "'no'": `"no"`,
		"2026-01-02": `"2026-01-02"`, "12:30:45": `"12:30:45"`, "1.2.3": `"1.2.3"`, "10.0.0.1": `"10.0.0.1"`,
		"=": `"="`, "<<": `"<<"`,
	} {
		if got, want := summary("k: "+text), "1: {\"k\":"+want+"}\n"; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"k: .inf":          `k: ".inf" is not a number that JSON knows: quote it if it is meant as a string`,
		"k: !!binary aGk=": "k: tag !!binary means nothing here: remove it",
		"k: !mine {a: 1}":  "k: tag !mine means nothing here: remove it",
		"k: !!set {a}":     "k: tag !!set means nothing here: remove it",
		"? [a]\n: 1":       ": a map or a list cannot be a key: use a string",
		"~: 1":             ": a key is missing before the colon: write one",
	} {
		if got := summary(text); !strings.HasSuffix(got, "\n1! "+want+"\n") {
			t.Errorf("%s gives %s, want problem %s", text, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	got := summary("8080: a\ntrue: b\nno: c\n1.50: d\n\"x y\": e\n0x10: f\n")
	if want := `1: {"8080":"a","true":"b","no":"c","1.50":"d","x y":"e","16":"f"}` + "\n"; got != want {
		t.Errorf("keys are %s, want %s", got, want)
	}
}

func TestDuplicateKeys(t *testing.T) {
	t.Parallel()
	many := "m: {k0: 0, k1: 0, k2: 0, k3: 0, k4: 0, k5: 0, k6: 0, k7: 0, k8: 0, k9: 0, k3: 1, k9: 1}\n"
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":       `3! a: key "a" is given twice, first on line 1: remove one of them`,
		"{\"a\": 1,\n\"a\": 2}\n":  `2! a: key "a" is given twice, first on line 1: remove one of them`,
		"x:\n- y.z: 1\n  y.z: 2\n": `3! x[0]["y.z"]: key "y.z" is given twice, first on line 2: remove one of them`,
		"1: a\n0x1: b\n":           `2! 1: key "1" is given twice, first on line 1: remove one of them`,
		many: `1! m.k3: key "k3" is given twice, first on line 1: remove one of them` + "\n" +
			`1! m.k9: key "k9" is given twice, first on line 1: remove one of them`,
	} {
		if _, got, _ := strings.Cut(summary(text), "\n"); got != want+"\n" {
			t.Errorf("%q gives\n%swant\n%s", text, got, want)
		}
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: &x {b: 1}\nc: *x\n":                         `1: {"a":{"b":1},"c":{"b":1}}`,
		"a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}\n":       `1: {"a":{"b":1,"c":2},"d":{"c":3,"b":1}}`,
		"a: &x {b: 1}\nd:\n  <<: *x\n  b: 2\n":          `1: {"a":{"b":1},"d":{"b":2}}`,
		"- &x {a: 1}\n- &y {a: 2, b: 2}\n- <<: [*x,*y]": `1: [{"a":1},{"a":2,"b":2},{"a":1,"b":2}]`,
		"&k a: 1\nb: *k\n":                              `1: {"a":1,"b":"a"}`,
		"a: {<<: 1}":                                    `1: {"a":{}}` + "\n" + `1! a["<<"]: a merge key takes a map or a list of maps: write out what is meant`,
		"a: &x [*x]":                                    `1: {"a":[[null]]}` + "\n" + `1! a[0][0]: alias *x stands within what it stands for: write out what is meant`,
	} {
		if got := summary(text); got != want+"\n" {
			t.Errorf("%q gives\n%swant\n%s", text, got, want)
		}
	}
}

// What aliases may add is bounded by what was written; a map of labels shared
// by thousands is fine, a bomb is not.
func TestAliasBounds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("labels: &l {a: 1, b: 2, c: 3, d: 4, e: 5}\nlist:\n")
	for range 5000 {
		b.WriteString("- labels: *l\n")
	}
	if got := summary(b.String()); strings.Contains(got, "!") {
		t.Errorf("shared labels are rejected: %s", got[strings.Index(got, "!"):]) //nolint:gocritic // it is there, as was asked
	}
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	if got := summary(bomb); strings.Count(got, "aliases make this document too large") != 1 || len(got) > 1<<20 {
		t.Errorf("a bomb gives %d bytes: %.200s", len(got), got)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", yamlpos.MaxDepth) + strings.Repeat("]", yamlpos.MaxDepth)
	if got := summary(deep); strings.Contains(got, "!") {
		t.Errorf("depth %d is rejected: %s", yamlpos.MaxDepth, got)
	}
	for _, text := range []string{"[" + deep + "]", "- " + deep, strings.Repeat("- ", 200)} {
		if got := summary(text); !strings.Contains(got, "maps and lists within each other: flatten it") {
			t.Errorf("%.20s… gives %s", text, got)
		}
	}
	if got := summary(strings.Repeat("[", 11_000)); !strings.HasPrefix(got, "1! not YAML: ") {
		t.Errorf("an endless list gives %s", got)
	}
	if got := summary(strings.Repeat(" ", yamlpos.MaxSize+1)); !strings.HasPrefix(got, "1! the file has 64 MiB") {
		t.Errorf("a large file gives %s", got)
	}
}

// The line is the one at which somebody has to look.
func TestBroken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\nb:\n  c: 1\n  d: 2\n   e: 3\n":    "5! not YAML: mapping values are not allowed in this context: ",
		"a: 1\nb:\n    c: 1\n    d: 2\n  e: 3\n": "5! not YAML: did not find expected key: ",
		"a: 1\nb:\n  c: 1\n\td: 2\n":             "4! not YAML: found a tab character that violates indentation: indent with spaces",
		"a: 1\nb: 2\nc\nd: 4\n":                  "3! not YAML: could not find expected ':': add the colon",
		"a: 1\nb: \"2\nc: 3\n":                   "2! not YAML: found unexpected end of stream: close what is opened here",
		"a: 1\nb: [2\nc: 3\n":                    "2! not YAML: did not find expected ',' or ']': ",
		"a: b: c\n":                              "1! not YAML: mapping values are not allowed in this context: ",
		"{\n \"a\": 1\n \"b\": 2\n}\n":           "3! not YAML: did not find expected ',' or '}': add the comma",
		"a: 1\nb: @foo\n":                        "2! not YAML: found character that cannot start any token: ",
		"a: 1\nb: \x01\n":                        "2! not YAML: control characters are not allowed: remove",
		"a: 1\nb: \"\\q\"\n":                     "2! not YAML: found unknown escape character: ",
		"a: 1\n---\nb: 1\nc: *nobody\n":          "4! not YAML: unknown anchor 'nobody' referenced: ",
		"a: 1\nb: \xff\n":                        "2! the text is not UTF-8: save the file in that encoding",
		"{\"a\": 1}\n{\"b\": 2}\n":               "2! not YAML: did not find expected <document start>: put --- between",
		"--- {a: 1}\n[b]\n":                      "2! not YAML: did not find expected <document start>: put --- between",
	} {
		_, got, _ := strings.Cut("\n"+summary(text), "\n")
		if i := strings.LastIndex(strings.TrimSuffix(got, "\n"), "\n"); i >= 0 {
			got = got[i+1:]
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q gives %swant %s", text, got, want)
		}
	}
}
