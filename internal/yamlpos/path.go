package yamlpos

import (
	"fmt"
	"strconv"
	"strings"
)

// Path writes a field path from names and indexes: Path("spec", "ports", 0, "number") is
// "spec.ports[0].number". An ambiguous name is quoted: metadata.labels["example.com/tier"].
func Path(steps ...any) string {
	var b strings.Builder
	for _, step := range steps {
		switch s := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case !plainName(s):
				b.WriteString("[" + strconv.Quote(s) + "]")
			case b.Len() == 0:
				b.WriteString(s)
			default:
				b.WriteString("." + s)
			}
		default:
			panic(fmt.Sprintf("yamlpos: step %v of a path is neither a name nor an index", step))
		}
	}
	return b.String()
}

func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetterOrDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// LineOf returns the line of the field that path names: the key's line in a map, the
// value's line in a list. For a missing field it returns the line of the nearest existing
// parent, where the field has to be added.
func (n *Node) LineOf(path string) int {
	line := n.Line()
	for n != nil && path != "" {
		name, index, rest, ok := cutStep(path)
		if !ok {
			break
		}
		n, line = n.step(name, index, line)
		path = rest
	}
	return line
}

// Has reports whether the document contains the field that path names. A field that is
// null is contained.
func (n *Node) Has(path string) bool {
	for path != "" {
		name, index, rest, ok := cutStep(path)
		if !ok || n == nil {
			return false
		}
		n, _ = n.step(name, index, 0)
		path = rest
	}
	return n != nil
}

// step goes one step down; the line is unchanged if there is no such field.
func (n *Node) step(name string, index, line int) (*Node, int) {
	if index >= 0 {
		if n.kind != List || index >= len(n.items) {
			return nil, line
		}
		return &n.items[index], n.items[index].line
	}
	i := n.index(name)
	if i < 0 {
		return nil, line
	}
	return &n.items[i], n.keys[i].Line
}

// cutStep cuts the first step off a path: a name, or an index that is not negative. It
// reports false if the path is malformed.
func cutStep(path string) (name string, index int, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		return path[:end], -1, path[end:], end > 0
	}
	path = path[1:]
	if quoted, err := strconv.QuotedPrefix(path); err == nil {
		name, err = strconv.Unquote(quoted)
		return name, -1, strings.TrimPrefix(path[len(quoted):], "]"), err == nil
	}
	digits, rest, _ := strings.Cut(path, "]")
	index, err := strconv.Atoi(digits)
	return "", index, rest, err == nil && index >= 0
}
