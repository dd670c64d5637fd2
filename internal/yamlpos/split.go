package yamlpos

import "bytes"

// part is the text of one document, with its marker line if it has one.
type part struct {
	line int // of its first line in the file, from 1
	text []byte
}

// split cuts text before every line that begins with the marker "---" and after every line
// that begins with "...". Both are markers at any start of a line: YAML allows them in no
// scalar, not even a block scalar. Finding them therefore needs no parsing, and cannot
// fail.
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

// lineLen returns the length of the first line of text, its end included.
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

// empty reports whether the part contains only blank lines, comments and directives.
// (Directives precede the marker they belong to; the only one in use gives the version of
// YAML.)
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

// json returns the text after the marker if it looks like JSON, and its first line.
func (p part) json() (text []byte, line int, ok bool) {
	text = p.text
	if isMarker(text, "---") {
		text = text[len("---"):]
	}
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	line = p.line + bytes.Count(text[:len(text)-len(trimmed)], []byte("\n"))
	return trimmed, line, len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
}
