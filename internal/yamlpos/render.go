package yamlpos

import (
	"encoding/json"
	"unicode/utf8"
)

// JSON renders the node so that every token is on its own line of the file, without the
// lines before first: line 1 of text is line first of the file. A decoder's "line 3" is
// then line first+2 of the file.
func (n *Node) JSON() (text []byte, first int) {
	if n == nil {
		return []byte("null"), 1
	}
	r := renderer{line: n.line}
	r.node(n)
	return r.out, n.line
}

type renderer struct {
	out  []byte
	line int
}

// move advances to a line. Nodes are in the order of the file, so it is never an earlier
// one.
func (r *renderer) move(line int) {
	for ; r.line < line; r.line++ {
		r.out = append(r.out, '\n')
	}
}

func (r *renderer) node(n *Node) {
	r.move(n.line)
	switch n.kind {
	case Null:
		r.out = append(r.out, "null"...)
	case Bool, Number:
		r.out = append(r.out, n.text...)
	case String:
		r.string(n.text)
	case List:
		r.list(n)
	case Map:
		r.entries(n)
	}
}

func (r *renderer) list(n *Node) {
	r.out = append(r.out, '[')
	for i := range n.items {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.node(&n.items[i])
	}
	r.out = append(r.out, ']')
}

func (r *renderer) entries(n *Node) {
	r.out = append(r.out, '{')
	for i := range n.items {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.move(n.keys[i].Line)
		r.string(n.keys[i].Name)
		r.out = append(r.out, ':')
		r.node(&n.items[i])
	}
	r.out = append(r.out, '}')
}

func (r *renderer) string(s string) {
	if isPlain(s) {
		r.out = append(r.out, '"')
		r.out = append(r.out, s...)
		r.out = append(r.out, '"')
		return
	}
	quoted, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	r.out = append(r.out, quoted...)
}

// isPlain reports whether s needs no escape.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
