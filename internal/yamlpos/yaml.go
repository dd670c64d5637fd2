package yamlpos

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a document with the YAML parser. spare is the bytes of memory for its
// aliases, beside the memory for the text itself.
func readYAML(p part, spare int64) (doc Document) {
	// The parser has panicked on hostile text before. A panic must not affect the other
	// documents.
	defer func() {
		if v := recover(); v != nil {
			doc = Document{Broken: &Problem{Line: p.line, Reason: fmt.Sprintf(
				"the YAML parser gives up on this document (%v): write it in a simpler way", v)}}
		}
	}()
	var top yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(p.text))
	err := decoder.Decode(&top)
	if err == nil {
		err = rest(decoder)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Document{Broken: p.problem(err)}
	}
	b := builder{
		shift:  p.line - 1,
		last:   p.line + bytes.Count(p.text, []byte("\n")),
		budget: aliasBase + min(len(p.text), int(max(spare, 0)/aliasCost)),
		open:   map[*yaml.Node]bool{},
	}
	root := Node{line: p.line}
	if len(top.Content) > 0 {
		root = b.node(top.Content[0], 0)
	}
	return Document{Root: &root}
}

// rest checks that nothing follows the document: the parser would ignore it silently.
func rest(decoder *yaml.Decoder) error {
	var more yaml.Node
	switch err := decoder.Decode(&more); {
	case err == nil:
		return fmt.Errorf("yaml: line %d: more text where the document had ended", more.Line)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// Aliases may add a value for each byte of a document, as far as its [Allowance] permits,
// and aliasBase values in any case. That suffices for a map of labels shared by thousands
// of endpoints, and keeps the cost of a file proportional to its size.
const aliasBase = 1000

// builder converts the parser's tree into nodes.
type builder struct {
	shift  int                 // lines of the file before the parser's first line
	last   int                 // line of the document
	budget int                 // values that aliases may still add
	spent  bool                // the exhausted budget was reported
	open   map[*yaml.Node]bool // anchors being expanded, to see cycles
	at     int                 // the line of the alias being expanded; zero outside
}

// line returns the line of y in the file: of the outermost alias it came by, if any.
func (b *builder) line(y *yaml.Node) int {
	if b.at > 0 {
		return b.at
	}
	return min(y.Line+b.shift, b.last)
}

func (b *builder) node(y *yaml.Node, depth int) Node {
	n := Node{line: b.line(y)}
	if b.at > 0 {
		if b.budget--; b.budget < 0 {
			return n // the outermost alias gets the fault
		}
	}
	if depth >= MaxDepth && y.Kind != yaml.ScalarNode {
		n.fault(fmt.Sprintf("more than %d maps and lists within each other: flatten it", MaxDepth))
		return n
	}
	switch y.Kind { //nolint:exhaustive // a document is taken apart before
	case yaml.ScalarNode:
		b.scalar(&n, y)
	case yaml.AliasNode:
		return b.alias(y, depth)
	case yaml.SequenceNode:
		n.kind = List
		n.items = make([]Node, 0, len(y.Content))
		for _, item := range y.Content {
			n.items = append(n.items, b.node(item, depth+1))
		}
		checkTag(&n, y, "!!seq")
	case yaml.MappingNode:
		n.kind = Map
		b.entries(&n, y, depth+1)
		checkTag(&n, y, "!!map")
	}
	return n
}

func checkTag(n *Node, y *yaml.Node, want string) {
	if tag := y.ShortTag(); tag != want {
		n.fault("tag " + tag + " means nothing here: remove it")
	}
}

func (b *builder) alias(y *yaml.Node, depth int) Node {
	n := Node{line: b.line(y)}
	if b.open[y.Alias] {
		n.fault("alias *" + y.Value + " stands within what it stands for: write out what is meant")
		return n
	}
	outermost := b.at == 0
	b.at = n.line
	b.open[y.Alias] = true
	n = b.node(y.Alias, depth)
	delete(b.open, y.Alias)
	if outermost {
		b.at = 0
		if b.budget < 0 {
			n = Node{line: n.line}
			if !b.spent {
				n.fault("aliases make this document too large: write out what is meant")
			}
			b.spent = true
		}
	}
	return n
}
