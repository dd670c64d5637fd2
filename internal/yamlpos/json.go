package yamlpos

import (
	"bytes"
	"encoding/json"
	"io"
)

// readJSON reads a document that is JSON and nothing else. It reports false
// for anything that is not: YAML then has the last word.
func readJSON(text []byte, line int) (*Node, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	r := jsonReader{decoder: decoder, text: text, line: line}
	root, ok := r.value(0)
	if !ok {
		return nil, false
	}
	if _, err := decoder.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return nil, false
	}
	return &root, true
}

type jsonReader struct {
	decoder *json.Decoder
	text    []byte
	line    int // of the last token
	offset  int // up to which line was counted
}

// next returns the next token and moves to its line. Tokens do not span
// lines, so the line one ends on is the line it stands on.
func (r *jsonReader) next() (json.Token, bool) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, false
	}
	end := int(r.decoder.InputOffset())
	r.line += bytes.Count(r.text[r.offset:end], []byte("\n"))
	r.offset = end
	return token, true
}

func (r *jsonReader) value(depth int) (Node, bool) {
	token, ok := r.next()
	if !ok {
		return Node{}, false
	}
	n := Node{line: r.line}
	switch t := token.(type) {
	case nil:
	case bool:
		n.kind, n.text = Bool, "false"
		if t {
			n.text = "true"
		}
	case json.Number:
		n.kind, n.text = Number, t.String()
	case string:
		n.kind, n.text = String, t
	case json.Delim:
		if depth == MaxDepth {
			return n, false // YAML's reader says so with the line
		}
		if t == '{' {
			n.kind = Map
			return n, r.entries(&n, depth+1)
		}
		n.kind = List
		return n, r.list(&n, depth+1)
	}
	return n, true
}

func (r *jsonReader) list(n *Node, depth int) bool {
	for r.decoder.More() {
		item, ok := r.value(depth)
		if !ok {
			return false
		}
		n.items = append(n.items, item)
	}
	_, ok := r.next()
	return ok
}

func (r *jsonReader) entries(n *Node, depth int) bool {
	m := mapping{node: n}
	for r.decoder.More() {
		token, ok := r.next()
		name, isString := token.(string)
		if !ok || !isString {
			return false
		}
		key := Key{name, r.line}
		value, ok := r.value(depth)
		if !ok {
			return false
		}
		m.put(key, value)
	}
	_, ok := r.next()
	return ok
}
