package yamlpos

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// manifest is a document as tools write them.
const manifest = `---
# from the cluster
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: reviews
  creationTimestamp: null
  labels:
    app.kubernetes.io/name: reviews
  annotations: {}
spec:
  hosts:
  - reviews.example.com
  - "*.reviews.example.com"
  ports:
    - name: http
      number: 80

    - number: 443
      name: 'https'
  exportTo: []
  resolution: STATIC
  enabled: true
  endpoints:
  - address: 10.0.0.1
    labels:
      version: v1
    weight: 3
  - address: 2001:db8::1
    locality: eu-west-1/eu-west-1a
  - address: unix:///var/run/a.sock
status: {}
`

// What is read as plain is what the YAML parser reads, line for line; and what
// tools write is read as plain.
func TestPlainIsYAML(t *testing.T) {
	t.Parallel()
	if !plainIsYAML(t, manifest) {
		t.Error("a manifest is not read as plain")
	}
	for _, text := range []string{
		"a: 1\na: 2\n", "- a\n- b: c\n  d: e\n- - f\n  - g\n", "a:\n- b\nc: d", "a:\n  b:\n    c: d\ne: f\n", "- a:\n  - b\n  c: d\n",
	} {
		if !plainIsYAML(t, text) {
			t.Errorf("not read as plain: %q", text)
		}
	}
}

func plainIsYAML(t interface{ Fatalf(string, ...any) }, text string) (plain bool) {
	for _, p := range split([]byte(text)) {
		root, ok := p.readPlain()
		if !ok {
			continue
		}
		plain = true
		want := p.readYAML()
		if want.Broken != nil {
			t.Fatalf("%q is read as plain; to YAML it is broken: %v", text, want.Broken)
		}
		if got, want := tree(root), tree(want.Root); got != want {
			t.Fatalf("%q is read as\n%s\nwant\n%s", text, got, want)
		}
	}
	return plain
}

// tree writes down all there is in a node.
func tree(n *Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %q", n.line, n.kind, n.text)
	for i := range n.items {
		if n.kind == Map {
			fmt.Fprintf(&b, " %v", n.keys[i])
		}
		fmt.Fprintf(&b, " {%s}", tree(&n.items[i]))
	}
	for _, f := range n.faults {
		fmt.Fprintf(&b, " %+v", f)
	}
	return b.String()
}

// A scalar or a name means what it means to YAML, or is left to it.
func TestPlainScalarsAreYAML(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "x", "v1", "eu/eu-1", "10.0.0.1", "1.2", "1.2.3", "1.2.3e4", "1", "0", "01", "1_0", "0x1F", "0o7", "123456789012345678901", "-1", "+1",
		"1e3", ".5", "1.", "2026-01-02", "2026-01-02 03:04:05", "2026-01-02T03:04:05.6.7Z", "2001:db8::1", "1:2", "12:30:45", "1:", "a:", "a: b", "a :b",
		"a #b", "a#b", "# b", "#b", `"a"`, `"a\\n"`, `"a`, `"a" b`, `"a"b"`, `"`, `""`, "'a'", "'a''b'", "'a", "'", "''", "{}", "[]", "{a: b}", "[a]", "{a", "&x", "*x",
		"!!str 1", "!x", "|", ">", "@", "`", "%", "?", "? a", "- a", "-", "- ", "--- a", "---", "...", ".inf", "-.INF", ".nan", "NaN", "<<", "=", "~", "a  b", "a ", " a", "\ta", "a\tb",
		"é", "a, b", "a]", "a}", "nan", "inf", "0b1", "1__2", "1-2", "0.0.0", "1.1.1_", "1.:", "4:5.6", "0x1:2", "0x1.2.3", "_1", "a\r", "a\u0085", "a\x00", "a\x7f",
		strings.Repeat("1", 17), strings.Repeat("1", 18), strings.Repeat("9", 19), strings.Repeat("a", 200), strings.Repeat("a", 1100),
	}
	for _, word := range []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "of", "nope", "trues"} {
		texts = append(texts, word, strings.ToUpper(word), strings.ToUpper(word[:1])+word[1:], word[:1]+strings.ToUpper(word[1:]))
	}
	for _, text := range texts {
		for _, form := range []string{"a: %s\n", "- %s\n", "%s: a\n", "- %s: a", "- a: %s", "- - %s", "a:\n- %s", "a:\n  b: %s\n", "a: %s\nb: c\n", "a: %s\n  b: c\n", "%s\n", "a:\n%s: b\n", " ---\na: %s\n"} {
			plainIsYAML(t, fmt.Sprintf(form, text))
		}
	}
}

// So it is with short texts of any characters.
func TestPlainTextsAreYAML(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.StringMatching(`[0-9a-fxobXe._:+ -]{1,8}`), rapid.StringMatching(`[ -~]{1,5}`))
	rapid.Check(t, func(t *rapid.T) {
		plainIsYAML(t, rapid.SampledFrom([]string{"a: ", "- ", "- a: "}).Draw(t, "before")+text.Draw(t, "text")+"\n")
	})
}

// However lines are indented, they lie in each other as they do to YAML, or
// are left to it.
func TestPlainStructureIsYAML(t *testing.T) {
	t.Parallel()
	line := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(" ", rapid.SampledFrom([]int{0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 6}).Draw(t, "indent")) +
			rapid.SampledFrom([]string{"", "", "", "- ", "- ", "- - ", "-  ", "-"}).Draw(t, "hyphens") +
			rapid.SampledFrom([]string{"a: b", "a:", "b: 1", "b:", "c: {}", "d", "1", "# e", "", "a: ", "---", "..."}).Draw(t, "text")
	})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 1, 6).Draw(t, "lines")
		plainIsYAML(t, strings.Join(lines, "\n")+rapid.SampledFrom([]string{"", "\n", "\n\n"}).Draw(t, "end"))
	})
}

// FuzzPlain looks for a text that reading as plain takes for something else
// than YAML does.
func FuzzPlain(f *testing.F) {
	f.Add(manifest)
	f.Add("- a: 1\n  b:\n  - x\n  c: \"d\"\n- e\n")
	f.Fuzz(func(t *testing.T, text string) {
		if refuse([]byte(text)) == nil {
			plainIsYAML(t, text)
		}
	})
}

// Texts that come again are held once.
func TestPlainSharesTexts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for range 1000 {
		b.WriteString("- locality: a-region-with-a-long-name/and-a-zone\n")
	}
	p := split([]byte(b.String()))[0]
	root, ok := p.readPlain()
	if !ok {
		t.Fatal("not plain")
	}
	first, last := root.items[0].items[0].text, root.items[999].items[0].text
	if reflect.ValueOf(first).UnsafePointer() != reflect.ValueOf(last).UnsafePointer() {
		t.Error("the same text is held twice")
	}
}
