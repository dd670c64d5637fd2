package yamlpos

import "unicode/utf8"

// Values that did not come from a text become nodes as well, so that the same code
// validates them. Such nodes have no line.

// NewScalar returns the node of a Bool, Number or String, with a text in the form of
// [Node.Text].
func NewScalar(kind Kind, text string) Node {
	n := Node{kind: kind, text: text}
	if !utf8.ValidString(text) {
		n.fault("the text is not UTF-8: encode it so")
	}
	return n
}

// NewList returns the node of a list. It keeps the slice.
func NewList(items []Node) Node { return Node{kind: List, items: items} }

// NewMap returns the node of a map with entries of these names. It keeps the slices, which
// are of one length. Of entries with the same name, the first stays.
func NewMap(names []string, items []Node) Node {
	n := Node{kind: Map, keys: make([]Key, 0, len(names)), items: make([]Node, 0, len(names))}
	m := mapping{node: &n}
	for i, name := range names {
		if !utf8.ValidString(name) {
			n.fault("a key is not UTF-8: encode it so")
			continue
		}
		m.put(Key{Name: name}, items[i])
	}
	return n
}
