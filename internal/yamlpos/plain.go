package yamlpos

import "bytes"

// readPlain reads a document in the form in which tools write manifests:
// nothing but block maps and lists, and scalars of one line, all in ASCII. A
// YAML parser takes several times as long over them. It reports false for
// anything else, broken text included: YAML then has the last word. What it
// does read means exactly what it means in YAML.
func (p part) readPlain() (*Node, bool) {
	r := plainReader{left: p.text, at: p.line - 1, plain: true, known: map[string]string{}}
	r.next()
	if r.indent == 0 && string(r.rest) == "---" {
		r.next()
	}
	if r.indent != 0 {
		return nil, false
	}
	root := r.block(0)
	return &root, r.plain && r.indent < 0 // with a line left, its indent fits nothing
}

// plainReader stands at a line that is neither blank nor a comment, or at the
// end. Plain is false once the text turned out to be something else; what it
// gives from then on means nothing.
type plainReader struct {
	left   []byte // after the line
	at     int    // number of the line
	indent int    // of the line; -1 at the end
	rest   []byte // of the line, without its indent
	plain  bool
	known  map[string]string // texts that come again and again
}

// fail makes the reader end.
func (r *plainReader) fail() { r.plain, r.indent, r.rest, r.left = false, -1, nil, nil }

// next goes on to the next line that says something.
func (r *plainReader) next() {
	for len(r.left) > 0 {
		n := lineLen(r.left)
		line := bytes.TrimSuffix(r.left[:n], []byte("\n"))
		r.left = r.left[n:]
		r.at++
		r.rest = bytes.TrimLeft(line, " ")
		r.indent = len(line) - len(r.rest)
		if !printable(r.rest) {
			r.fail()
			return
		}
		if len(r.rest) > 0 && r.rest[0] != '#' {
			return
		}
	}
	r.indent, r.rest = -1, nil
}

func printable(line []byte) bool {
	for _, c := range line {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// block takes the map or the list that begins on this line.
func (r *plainReader) block(depth int) Node {
	n := Node{line: r.at}
	switch {
	case depth >= MaxDepth:
		r.fail()
	case r.inList():
		r.list(&n, depth+1)
	default:
		r.entries(&n, depth+1)
	}
	return n
}

func (r *plainReader) inList() bool {
	return len(r.rest) > 1 && r.rest[0] == '-' && r.rest[1] == ' '
}

func (r *plainReader) list(n *Node, depth int) {
	n.kind = List
	for indent := r.indent; r.indent == indent && r.inList(); {
		r.rest = r.rest[2:]
		if _, _, ok := plainEntry(r.rest); ok || r.inList() {
			r.indent = indent + 2
			n.items = append(n.items, r.block(depth))
		} else {
			n.items = append(n.items, r.scalar(r.rest))
			r.next()
		}
	}
}

func (r *plainReader) entries(n *Node, depth int) {
	n.kind = Map
	m := mapping{node: n}
	for indent := r.indent; r.indent == indent && !r.inList(); {
		name, value, ok := plainEntry(r.rest)
		if !ok {
			r.fail()
			return
		}
		key := Key{Line: r.at, Name: r.text(name)}
		if len(value) > 0 {
			scalar := r.scalar(value)
			r.next()
			m.put(key, scalar)
		} else {
			m.put(key, r.below(indent, depth))
		}
	}
}

// below takes the value of a key that has none on its own line. A list may
// stand below it with the same indent, for its hyphens count as one.
func (r *plainReader) below(indent, depth int) Node {
	r.next()
	if r.indent > indent || r.indent == indent && r.inList() {
		return r.block(depth)
	}
	r.fail()
	return Node{}
}

// plainEntry takes a line of a map apart. The name is one that YAML takes for
// a string.
func plainEntry(line []byte) (name, value []byte, ok bool) {
	end := 0
	for end < len(line) && isNameByte(line[end]) {
		end++
	}
	if end == 0 || end > 128 || !isLetter(line[0]) || plainWord(line[:end]) || end == len(line) || line[end] != ':' {
		return nil, nil, false
	}
	name, value = line[:end], line[end+1:]
	if len(value) == 0 {
		return name, nil, true
	}
	if value[0] != ' ' {
		return nil, nil, false
	}
	return name, value[1:], true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '.' || c == '/' || c == '_' || c == '-'
}
