package yamlpos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"unicode/utf8"
)

// Bounds of the input. They are far above the size of real files, and low enough that a
// hostile file costs no more than an honest one of its size.
const (
	MaxSize   = 64 << 20  // bytes of a file
	MaxDepth  = 100       // maps and lists within each other
	MaxMemory = 256 << 20 // bytes of memory that one document may take, unless its reader says less
)

// Document is one document of a file: either its Root, or why it has none.
type Document struct {
	Root   *Node
	Broken *Problem // the text is not YAML; Root is nil
}

// Problem is a fault of a document.
type Problem struct {
	Line   int    // in the file, from 1
	Field  string // a path, as in [Path]; empty for the whole
	Reason string // the fault and how to fix it
}

// Documents yields the documents of a file in order. Empty ones are left out. A file that
// cannot be read at all yields a single broken document. They are read one at a time: the
// memory of a document is free once its Root is dropped.
func Documents(text []byte) iter.Seq[Document] { return DocumentsWithin(text, MaxMemory) }

// DocumentsWithin is Documents for a reader with so many bytes of memory for each document.
// A document that would take more is broken, and nothing of it is read.
func DocumentsWithin(text []byte, memory int64) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		if p := reject(text); p != nil {
			yield(Document{Broken: p})
			return
		}
		for _, p := range split(bytes.TrimPrefix(text, []byte("\ufeff"))) {
			doc := p.read(memory)
			if doc.Root != nil && doc.Root.kind == Null && len(doc.Root.faults) == 0 {
				continue
			}
			if !yield(doc) {
				return
			}
		}
	}
}

// reject returns why a file cannot be read at all; nil if it can.
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

// read tries JSON first if a document looks like it. JSON is YAML, but the JSON reader
// costs a fraction and supports more escapes. Invalid JSON is left to YAML, whose result
// then counts.
func (p part) read(memory int64) Document {
	if text, line, ok := p.json(); ok && json.Valid(text) {
		counts := countJSON(text)
		if broken := checkCost(len(text), counts.cost(), memory, line); broken != nil {
			return Document{Broken: broken}
		}
		if root, ok := readJSON(text, line, counts); ok {
			return Document{Root: root}
		}
	}
	cost := costOfYAML(p.text)
	if broken := checkCost(len(p.text), cost, memory, p.line); broken != nil {
		return Document{Broken: broken}
	}
	return readYAML(p, Allowance(len(p.text))-cost)
}
