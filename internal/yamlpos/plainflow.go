package yamlpos

import "bytes"

// flow takes a map or a list in braces or brackets, and what it lies in goes on
// with what is left of the line.
func (r *plainReader) flow(s []byte, depth int) (n Node, left []byte) {
	n = Node{line: r.at, kind: List}
	end := byte(']')
	if s[0] == '{' {
		n.kind, end = Map, '}'
	}
	m := mapping{node: &n}
	for s = s[1:]; depth < plainDepth; s = s[1:] {
		s = bytes.TrimLeft(s, " ")
		var key Key
		if n.kind == Map {
			key, s = r.flowKey(s)
		}
		var value Node
		if value, s = r.flowValue(s, depth+1); !r.plain || len(s) == 0 {
			break
		}
		if n.kind == Map {
			m.put(key, value)
		} else {
			n.items = append(n.items, value)
		}
		if s[0] == end {
			return n, s[1:]
		}
		if s[0] != ',' {
			break
		}
	}
	r.fail()
	return n, nil
}

func (r *plainReader) flowKey(s []byte) (key Key, left []byte) {
	name, left, ok := plainEntry(s)
	if !ok || len(left) == 0 {
		r.fail()
	}
	return Key{Name: r.text(name), Line: r.at}, left
}

// flowValue takes a value up to the comma or the bracket after it.
func (r *plainReader) flowValue(s []byte, depth int) (n Node, left []byte) {
	if len(s) > 1 && (s[0] == '{' || s[0] == '[') && !emptyFlow(s[:2]) {
		n, left = r.flow(s, depth)
		return n, bytes.TrimLeft(left, " ")
	}
	end := flowEnd(s)
	if end < 0 {
		r.fail()
		return n, nil
	}
	return r.scalar(bytes.TrimRight(s[:end], " ")), s[end:]
}

func emptyFlow(s []byte) bool { return string(s) == "{}" || string(s) == "[]" }

// flowEnd is where a scalar ends.
func flowEnd(s []byte) int {
	switch {
	case len(s) == 0:
		return -1
	case len(s) > 1 && emptyFlow(s[:2]):
		return 2
	case s[0] == '"' || s[0] == '\'':
		quote := bytes.IndexByte(s[1:], s[0])
		if quote < 0 {
			return -1
		}
		return quote + 2 + bytes.IndexAny(s[quote+2:], ",]}")
	default:
		return bytes.IndexAny(s, ",[]{}")
	}
}
