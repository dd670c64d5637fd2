package yamlpos

import "bytes"

// part is the text of one document, from its marker line on if it has one.
type part struct {
	line int // of its first line in the file, from 1
	text []byte
}

// split cuts text before every line that begins with the marker "---" and
// after every line that begins with "...". Both are markers wherever they
// stand at the start of a line: YAML allows them in no scalar, not even a
// block scalar, so no parsing is needed to find them, and none can go wrong.
func split(text []byte) []part {
	var parts []part
	start, startLine := 0, 1
	cut := func(end, line int) {
		if p := (part{startLine, text[start:end]}); !p.empty() {
			parts = append(parts, p)
		}
		start, startLine = end, line
	}
	line := 1
	for at := 0; at < len(text); line++ {
		next := at + lineLen(text[at:])
		switch {
		case isMarker(text[at:next], "---"):
			cut(at, line)
		case isMarker(text[at:next], "..."):
			cut(at, line)
			start, startLine = next, line+1
		}
		at = next
	}
	cut(len(text), line)
	return parts
}

// lineLen is the length of the first line of text, its end included.
func lineLen(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// empty reports whether the part holds nothing but blank lines, comments and
// directives. (Directives stand before the marker they belong to; the only
// one in use says which version of YAML this is.)
func (p part) empty() bool {
	text := p.text
	if isMarker(text, "---") {
		text = text[len("---"):]
	}
	for len(text) > 0 {
		n := lineLen(text)
		if line := bytes.TrimSpace(text[:n]); len(line) > 0 && line[0] != '#' && text[0] != '%' {
			return false
		}
		text = text[n:]
	}
	return true
}

// json returns what follows the marker if it looks like JSON, and the line it starts on.
func (p part) json() (text []byte, line int, ok bool) {
	text = p.text
	if isMarker(text, "---") {
		text = text[len("---"):]
	}
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	line = p.line + bytes.Count(text[:len(text)-len(trimmed)], []byte("\n"))
	return trimmed, line, len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
}
