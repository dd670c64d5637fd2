package yamlpos_test

import (
	"encoding/json"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// Whatever a file holds, what it gives has a JSON form that gives the same again, on the same
// lines.
func FuzzDocuments(f *testing.F) {
	for _, text := range []string{
		sample, "a: &x [1, 2]\nb: *x\n", "{\"a\": [1, \"\\u0041\", null]}", "--- |\n ---\n...\n%YAML 1.1\n---\n",
		"a: {<<: [{b: 1}, {c: .inf}]}\n", "\ufeffa: 0x10\r\n---\r\nb", "? [a]\n: !!set {x}\n", "\"\\x85\": \u2028 yes\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		last := 0
		for doc := range yamlpos.Documents(text) {
			if doc.Broken != nil {
				if doc.Root != nil || doc.Broken.Line < 1 || doc.Broken.Reason == "" {
					t.Errorf("broken document %+v", doc.Broken)
				}
				continue
			}
			if line := doc.Root.Line(); line < last || line < 1 {
				t.Errorf("a document on line %d after one on line %d", line, last)
			}
			last = doc.Root.Line()
			rendered, first := doc.Root.JSON()
			if !json.Valid(rendered) {
				t.Fatalf("not JSON:\n%s", rendered)
			}
			for _, p := range doc.Root.Problems() {
				if p.Line < first || p.Reason == "" {
					t.Errorf("problem %+v", p)
				}
			}
			reread(t, rendered, first, doc.Root)
		}
	})
}

func reread(t *testing.T, rendered []byte, first int, want *yamlpos.Node) {
	t.Helper()
	if want.Kind() != yamlpos.Map && want.Kind() != yamlpos.List {
		return // read as YAML, a scalar may be something else
	}
	for doc := range yamlpos.Documents(rendered) {
		if doc.Broken != nil {
			t.Fatalf("JSON form is broken: %+v", doc.Broken)
		}
		same(t, doc.Root, want, first-1)
	}
}

func same(t *testing.T, got, want *yamlpos.Node, shift int) {
	t.Helper()
	if got.Kind() != want.Kind() || got.Text() != want.Text() || got.Len() != want.Len() || got.Line()+shift != want.Line() {
		t.Fatalf("line %d: %v %q, want line %d: %v %q",
			got.Line()+shift, got.Kind(), got.Text(), want.Line(), want.Kind(), want.Text())
	}
	for key, value := range want.Fields() {
		same(t, got.Get(key.Name), value, shift)
	}
	for i, item := range want.Items() {
		same(t, got.Item(i), item, shift)
	}
}
