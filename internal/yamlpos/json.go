package yamlpos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// JSON reads a text that is one JSON value. Unlike [Documents], it accepts nothing else.
func JSON(text []byte) Document {
	if p := reject(text); p != nil {
		return Document{Broken: p}
	}
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	if err == nil {
		counts := countJSON(text)
		if broken := checkCost(len(text), counts.cost(), MaxMemory, 1); broken != nil {
			return Document{Broken: broken}
		}
		if root, ok := readJSON(text, 1, counts); ok {
			return Document{Root: root}
		}
		// The text is deeper than MaxDepth.
		return Document{Broken: &Problem{Line: 1, Reason: fmt.Sprintf(
			"more than %d maps and lists within each other: flatten it", MaxDepth)}}
	}
	before := text
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		before = text[:min(max(int(syntax.Offset)-1, 0), len(text))]
	}
	return Document{Broken: &Problem{
		Line: 1 + bytes.Count(before, []byte("\n")), Reason: "not JSON: " + err.Error() + ": correct the document",
	}}
}

// readJSON reads a text that is known to be valid JSON, so it needs no checks. It reports
// false for a text deeper than MaxDepth.
func readJSON(text []byte, line int, c valueCounts) (*Node, bool) {
	r := jsonReader{text: text, line: line, counts: c.entries}
	root := r.value(0)
	return &root, !r.deep
}

type jsonReader struct {
	text   []byte  // the unread rest
	counts []int32 // number of entries of the lists and maps still to be read
	line   int     // on which it begins
	deep   bool    // the nesting exceeds MaxDepth
}

// next moves to the next token and returns its first byte.
func (r *jsonReader) next() byte {
	for i, c := range r.text {
		switch c {
		case '\n':
			r.line++
		case ' ', '\t', '\r', ',', ':': // in valid JSON these carry no information
		default:
			r.text = r.text[i:]
			return c
		}
	}
	return 0
}

func (r *jsonReader) value(depth int) Node {
	c := r.next()
	n := Node{line: r.line}
	switch c {
	case '{', '[':
		r.text = r.text[1:]
		if depth >= MaxDepth {
			r.deep = true // YAML's reader reports it with the line
		}
		if c == '{' {
			r.entries(&n, depth+1)
		} else {
			r.list(&n, depth+1)
		}
	case '"':
		n.kind, n.text = String, r.string()
	case 't', 'f':
		n.kind, n.text = Bool, r.word()
	case 'n':
		r.word()
	default:
		n.kind, n.text = Number, r.word()
	}
	return n
}

// expect returns the number of entries of the list or map that begins here.
func (r *jsonReader) expect() int {
	n := r.counts[0]
	r.counts = r.counts[1:]
	return int(n)
}

func (r *jsonReader) list(n *Node, depth int) {
	n.kind = List
	n.items = make([]Node, 0, r.expect())
	for r.next() != ']' {
		n.items = append(n.items, r.value(depth))
	}
	r.text = r.text[1:]
}

func (r *jsonReader) entries(n *Node, depth int) {
	n.kind = Map
	m := mapping{node: n}
	if most := r.expect(); most > 0 {
		n.keys, n.items = make([]Key, 0, most), make([]Node, 0, most)
	}
	for r.next() != '}' {
		key := Key{Line: r.line, Name: r.string()}
		m.put(key, r.value(depth))
	}
	r.text = r.text[1:]
}

// string takes a string, which never spans lines.
func (r *jsonReader) string() string {
	end, escaped := 1, false
	for ; r.text[end] != '"'; end++ {
		if r.text[end] == '\\' {
			end, escaped = end+1, true
		}
	}
	token := r.text[:end+1]
	r.text = r.text[end+1:]
	if !escaped {
		return string(token[1:end])
	}
	var s string
	if err := json.Unmarshal(token, &s); err != nil { // the token is part of valid JSON
		panic(err)
	}
	return s
}

// word takes a number or a name.
func (r *jsonReader) word() string {
	end := 0
	for end < len(r.text) && !strings.ContainsRune(" \t\r\n,:]}", rune(r.text[end])) {
		end++
	}
	word := string(r.text[:end])
	r.text = r.text[end:]
	return word
}
