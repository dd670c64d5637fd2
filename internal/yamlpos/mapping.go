package yamlpos

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// mapping fills a map node and checks for duplicate keys: the first stays, the second is a
// fault.
type mapping struct {
	node *Node
	seen map[string]int // index by name, once there are more than a few
}

const few = 8

func (m *mapping) put(key Key, value Node) {
	n := m.node
	if i, ok := m.find(key.Name); ok {
		n.faults = append(n.faults, Problem{Line: key.Line, Field: key.Name, Reason: fmt.Sprintf(
			"key %q is given twice, first on line %d: remove one of them", key.Name, n.keys[i].Line)})
		return
	}
	if n.keys == nil {
		n.keys, n.items = make([]Key, 0, 4), make([]Node, 0, 4)
	}
	if m.seen != nil {
		m.seen[key.Name] = len(n.keys)
	}
	n.keys = append(n.keys, key)
	n.items = append(n.items, value)
}

func (m *mapping) find(name string) (int, bool) {
	if len(m.node.keys) <= few {
		i := m.node.index(name)
		return i, i >= 0
	}
	if m.seen == nil {
		m.seen = make(map[string]int, 4*few)
		for i, key := range m.node.keys {
			m.seen[key.Name] = i
		}
	}
	i, ok := m.seen[name]
	return i, ok
}

// entries fills n from a YAML map. The map's own keys take precedence over merge keys (<<),
// in any order.
func (b *builder) entries(n *Node, y *yaml.Node, depth int) {
	m := mapping{node: n}
	own := b.ownNames(y)
	for i := 0; i+1 < len(y.Content); i += 2 {
		yk, yv := y.Content[i], y.Content[i+1]
		if yk.Tag == "!!merge" {
			b.merge(&m, own, b.node(yv, depth))
			continue
		}
		key, reason := b.key(yk)
		if reason != "" {
			n.faults = append(n.faults, Problem{Line: key.Line, Reason: reason})
			continue
		}
		m.put(key, b.node(yv, depth))
	}
}

// ownNames returns the names a map has by itself if it has a merge key, too.
func (b *builder) ownNames(y *yaml.Node) map[string]bool {
	merges, names := false, map[string]bool(nil)
	for i := 0; i < len(y.Content); i += 2 {
		merges = merges || y.Content[i].Tag == "!!merge"
	}
	for i := 0; merges && i < len(y.Content); i += 2 {
		if key, reason := b.key(y.Content[i]); reason == "" && y.Content[i].Tag != "!!merge" {
			if names == nil {
				names = map[string]bool{}
			}
			names[key.Name] = true
		}
	}
	return names
}

// merge adds the entries of a merge key: of a map, or of several, where an earlier one
// wins.
func (b *builder) merge(m *mapping, own map[string]bool, from Node) {
	switch from.kind {
	case List:
		for _, item := range from.items {
			if item.kind == List {
				m.node.faults = append(m.node.faults, mergeFault(from.line))
				return
			}
			b.merge(m, own, item)
		}
	case Map:
		for i, key := range from.keys {
			if _, has := m.find(key.Name); !has && !own[key.Name] {
				m.put(key, from.items[i])
			}
		}
	default:
		if len(from.faults) == 0 {
			m.node.faults = append(m.node.faults, mergeFault(from.line))
		}
	}
	m.node.faults = append(m.node.faults, from.faults...)
}

func mergeFault(line int) Problem {
	return Problem{Line: line, Field: "<<", Reason: "a merge key takes a map or a list of maps: write out what is meant"}
}
