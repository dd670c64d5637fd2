package yamlpos

import (
	"bytes"
	"fmt"
	"iter"
	"unicode/utf8"
)

// Bounds of what is read. They are far above what anybody writes, and low
// enough that a hostile file costs no more than an honest one of its size.
const (
	MaxSize  = 64 << 20 // bytes of a file
	MaxDepth = 100      // maps and lists within each other
)

// Document is one document of a file: either its Root, or why it has none.
type Document struct {
	Root   *Node
	Broken *Problem // the text is not YAML; Root is nil
}

// Problem is something wrong with a document.
type Problem struct {
	Line   int    // in the file, from 1
	Field  string // a path, as in [Path]; empty for the whole
	Reason string // what is wrong and how to fix it
}

// Documents yields the documents of a file in order. Empty ones are left out.
// A file that cannot be read at all yields a single broken document.
func Documents(text []byte) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		if p := reject(text); p != nil {
			yield(Document{Broken: p})
			return
		}
		for _, p := range split(bytes.TrimPrefix(text, []byte("\ufeff"))) {
			doc := p.read()
			if doc.Root != nil && doc.Root.kind == Null && len(doc.Root.faults) == 0 {
				continue
			}
			if !yield(doc) {
				return
			}
		}
	}
}

// reject says why a file is not worth looking at; nil if it is.
func reject(text []byte) *Problem {
	if len(text) > MaxSize {
		return &Problem{Line: 1, Reason: fmt.Sprintf(
			"the file has %d MiB and at most %d are read: split it", len(text)>>20, MaxSize>>20)}
	}
	if utf8.Valid(text) {
		return nil
	}
	line := 1
	for at := 0; at < len(text); line++ {
		next := at + lineLen(text[at:])
		if !utf8.Valid(text[at:next]) {
			break
		}
		at = next
	}
	return &Problem{Line: line, Reason: "the text is not UTF-8: save the file in that encoding"}
}

// read tries JSON first where a document looks like it. JSON is YAML, but
// reading it as what it is costs a fraction and knows more of its escapes;
// whatever is not quite JSON is left to YAML, whose judgement then holds.
func (p part) read() Document {
	if text, line, ok := p.json(); ok {
		if root, ok := readJSON(text, line); ok {
			return Document{Root: root}
		}
	}
	return p.readYAML()
}
