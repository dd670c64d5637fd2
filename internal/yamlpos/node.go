package yamlpos

import "iter"

// Kind is the kind of a node's value, in JSON's terms.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a map"}[k]
}

// Node is one value of a document. A nil Node is an absent one: it is Null and
// has nothing below it.
type Node struct {
	kind   Kind
	line   int
	text   string // of a scalar: the string, the JSON number, "true" or "false"
	keys   []Key  // of a map, beside items
	items  []Node
	faults []Problem // fields relative to this node
}

// Key is the name of a map's entry and its line.
type Key struct {
	Name string
	Line int
}

// Kind returns the kind of the node's value.
func (n *Node) Kind() Kind {
	if n == nil {
		return Null
	}
	return n.kind
}

// Line returns the first line of the node in the file, from 1; zero if it is absent. A
// value that came by an alias has the line of the alias.
func (n *Node) Line() int {
	if n == nil {
		return 0
	}
	return n.line
}

// Text returns the content of a scalar: a string unchanged, a number in JSON's form, "true"
// or "false"; empty for other kinds.
func (n *Node) Text() string {
	if n == nil {
		return ""
	}
	return n.text
}

// Len returns the number of entries of a map or a list.
func (n *Node) Len() int {
	if n == nil {
		return 0
	}
	return len(n.items)
}

// Get returns the value a map has under name; nil if there is none.
func (n *Node) Get(name string) *Node {
	if i := n.index(name); i >= 0 {
		return &n.items[i]
	}
	return nil
}

func (n *Node) index(name string) int {
	if n == nil {
		return -1
	}
	for i, key := range n.keys {
		if key.Name == name {
			return i
		}
	}
	return -1
}

// Item returns the entry of a list at index i; nil if there is none.
func (n *Node) Item(i int) *Node {
	if n == nil || n.kind != List || i < 0 || i >= len(n.items) {
		return nil
	}
	return &n.items[i]
}

// Fields yields the entries of a map in the order of the file.
func (n *Node) Fields() iter.Seq2[Key, *Node] {
	return func(yield func(Key, *Node) bool) {
		if n == nil {
			return
		}
		for i := range n.keys {
			if !yield(n.keys[i], &n.items[i]) {
				return
			}
		}
	}
}

// Items yields the entries of a list by their index.
func (n *Node) Items() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		if n == nil || n.kind != List {
			return
		}
		for i := range n.items {
			if !yield(i, &n.items[i]) {
				return
			}
		}
	}
}

// fault notes a fault of the node itself.
func (n *Node) fault(reason string) {
	n.faults = append(n.faults, Problem{Line: n.line, Reason: reason})
}

// Problems returns the faults of the node and all below it in well-formed text, such as
// duplicate keys, in the order of the file. Fields are relative to the node. There are at
// most MaxProblems.
func (n *Node) Problems() []Problem {
	if n == nil || !n.faulty() {
		return nil
	}
	var found []Problem
	n.problems(nil, &found)
	return found
}

// MaxProblems bounds the noted problems of a document. More are of no use to a reader, and
// a text may have one for every few bytes.
const MaxProblems = 1000

// faulty reports whether there is any problem; usually there is none.
func (n *Node) faulty() bool {
	if len(n.faults) > 0 {
		return true
	}
	for i := range n.items {
		if n.items[i].faulty() {
			return true
		}
	}
	return false
}

func (n *Node) problems(path []any, found *[]Problem) {
	for _, p := range n.faults {
		if len(*found) >= MaxProblems {
			return
		}
		if p.Field != "" {
			p.Field = Path(append(path, p.Field)...)
		} else {
			p.Field = Path(path...)
		}
		*found = append(*found, p)
	}
	for i := range n.items {
		if n.kind == Map {
			n.items[i].problems(append(path, n.keys[i].Name), found)
		} else {
			n.items[i].problems(append(path, i), found)
		}
	}
}
