package verdicts

import (
	"encoding/json"
	"fmt"
	"strings"
)

// object and list make up a generated document. A string in one is always a
// string, a bare is a scalar as it is written.
type (
	object = map[string]any
	list   = []any
	bare   string
)

// render writes a document as people do, in block style.
func render(doc object) []byte {
	var b strings.Builder
	block(&b, doc, 0)
	return []byte(b.String())
}

// block writes a value whose key, or hyphen, is already on the line.
func block(b *strings.Builder, value any, depth int) {
	indent := strings.Repeat("  ", depth)
	switch v := value.(type) {
	case object:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		if depth > 0 {
			b.WriteByte('\n')
		}
		for _, key := range sortedKeys(v) {
			b.WriteString(indent + quote(key) + ":")
			block(b, v[key], depth+1)
		}
	case list:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteByte('\n')
		for _, item := range v {
			b.WriteString(indent + "-")
			block(b, item, depth+1)
		}
	case string:
		b.WriteString(" " + quote(v) + "\n")
	case bare:
		b.WriteString(" " + string(v) + "\n")
	default: // numbers, booleans and null
		fmt.Fprintf(b, " %s\n", must(json.Marshal(v)))
	}
}

func quote(s string) string {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return string(must(json.Marshal(s)))
		}
	}
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return `"` + s + `"`
	}
	return s
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
