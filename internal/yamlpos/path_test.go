package yamlpos_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

func only(t *testing.T, text string) *yamlpos.Node {
	t.Helper()
	for doc := range yamlpos.Documents([]byte(text)) {
		if doc.Broken != nil {
			t.Fatalf("line %d: %s", doc.Broken.Line, doc.Broken.Reason)
		}
		return doc.Root
	}
	t.Fatal("no document")
	return nil
}

const sample = `# comment
---
spec:
  hosts:
  - a.example
  - b.example

  ports:
  - number: 80
    name:
      http
  - {number: 81,
     name: admin}
  labels:
    example.com/tier: web
    "": none
  text: |
    one
    two
  shared: &s
    deep: 1
  again: *s
`

func TestLineOf(t *testing.T) {
	t.Parallel()
	root := only(t, sample)
	for path, want := range map[string]int{
		"": 3, "spec": 3, "spec.hosts": 4, "spec.hosts[1]": 6, "spec.hosts[7]": 4, "spec.hosts[1].x": 6,
		"spec.ports[0].number": 9, "spec.ports[0].name": 10, "spec.ports[1]": 12, "spec.ports[1].name": 13,
		"spec.ports[1].protocol": 12, "spec.ports.x": 8, "spec.nothing.of[3].this": 3, "metadata.name": 3,
		`spec.labels["example.com/tier"]`: 15, `spec.labels[""]`: 16, "spec.text": 17,
		"spec.shared.deep": 21, "spec.again": 22, "spec.again.deep": 22,
		"spec[": 3, "spec[x]": 3, "spec..hosts": 3, "spec.hosts[-1]": 4, "[0]": 3, `spec["hosts"][0]`: 5,
	} {
		if got := root.LineOf(path); got != want {
			t.Errorf("%s is on line %d, want %d", path, got, want)
		}
	}
	if got := (*yamlpos.Node)(nil).LineOf("a.b"); got != 0 {
		t.Errorf("a field of nothing is on line %d", got)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for want, steps := range map[string][]any{
		"":                                  {},
		"spec.ports[0].number":              {"spec", "ports", 0, "number"},
		`labels["example.com/tier"]`:        {"labels", "example.com/tier"},
		`["a.b"].c[1][2]`:                   {"a.b", "c", 1, 2},
		`x["\"]"]`:                          {"x", `"]`},
		"items[12].metadata-1.name_2[\"\"]": {"items", 12, "metadata-1", "name_2", ""},
	} {
		if got := yamlpos.Path(steps...); got != want {
			t.Errorf("path is %s, want %s", got, want)
		}
	}
}

// A decoder's line of the JSON form is the line of the file.
func TestJSONKeepsLines(t *testing.T) {
	t.Parallel()
	spec := only(t, sample).Get("spec")
	text, first := spec.JSON()
	if !json.Valid(text) || first != 4 {
		t.Fatalf("line %d:\n%s", first, text)
	}
	for token, want := range map[string]int{
		`"a.example"`: 5, "80": 9, `"http"`: 11, "81": 12, `"admin"`: 13, `"web"`: 15, `"one\ntwo\n"`: 17, `"deep"`: 21,
		`"again"`: 22,
	} {
		before, _, ok := strings.Cut(string(text), token)
		if got := first + strings.Count(before, "\n"); !ok || got != want {
			t.Errorf("%s is on line %d, want %d", token, got, want)
		}
	}
}

func TestAbsent(t *testing.T) {
	t.Parallel()
	n := only(t, "a: [1]\n").Get("b").Get("c").Item(3)
	for range n.Fields() {
		t.Error("nothing has a field")
	}
	for range n.Items() {
		t.Error("nothing has an item")
	}
	if text, _ := n.JSON(); n.Kind() != yamlpos.Null || n.Len() != 0 || n.Text() != "" || n.Problems() != nil || string(text) != "null" {
		t.Errorf("nothing is %v %q %s", n.Kind(), n.Text(), text)
	}
}
