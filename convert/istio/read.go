package istio

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// Read yields the objects of a text in YAML or JSON, in their order: each document, and
// each item of a list. A document that is neither YAML nor JSON is one invalid object, and
// does not affect its neighbours.
func Read(text []byte) iter.Seq[Reading] { return ReadWithin(text, yamlpos.MaxMemory) }

// ReadWithin is Read with a bound on the memory for each document, in bytes. A larger
// document is one invalid object, and nothing of it is read.
func ReadWithin(text []byte, memory int64) iter.Seq[Reading] {
	return func(yield func(Reading) bool) {
		for document := range yamlpos.DocumentsWithin(text, memory) {
			if document.Broken != nil {
				if !yield(broken(document.Broken)) {
					return
				}
				continue
			}
			if !readAll(document.Root, yield) {
				return
			}
		}
	}
}

// FromJSON reads one object in the JSON of an API server.
func FromJSON(text []byte) Reading {
	document := yamlpos.JSON(text)
	if document.Broken != nil {
		return broken(document.Broken)
	}
	return read(document.Root)
}

// FromMessage reads an object in its typed form. A message does not distinguish absent from
// empty or zero, so empty and zero fields count as absent. Unknown fields are ignored.
func FromMessage(o Object) Reading {
	if o.Kind() == "" {
		return Reading{Problems: []Problem{{Field: "spec", Reason: fmt.Sprintf(
			"%T is not an object that is read: use one of the messages of %s", o.Spec, Group)}}}
	}
	root := nodeOf(o)
	return read(&root)
}

func broken(p *Problem) Reading { return Reading{Line: p.Line, Problems: []Problem{*p}} }

// readAll reads an object, or each object in a list.
func readAll(root *yamlpos.Node, yield func(Reading) bool) bool {
	if !isList(root) {
		return yield(read(root))
	}
	items := root.Get("items")
	if present(items) && items.Kind() != yamlpos.List {
		p := problems{}
		p.add(top("items"), "must be a list, is %s", items.Kind())
		return yield(Reading{Line: root.Line(), Problems: p.sorted(root)})
	}
	for _, item := range items.Items() {
		if !readAll(item, yield) {
			return false
		}
	}
	return true
}

func isList(root *yamlpos.Node) bool {
	return root.Get("apiVersion").Text() == "v1" && root.Get("kind").Text() == "List"
}

// read reads one object.
func read(root *yamlpos.Node) Reading { return readWith(root, problems{}) }

func readWith(root *yamlpos.Node, p problems) Reading {
	r := Reading{Line: root.Line()}
	apiVersion := readHead(root, &r, &p)
	switch {
	case len(p.found) > 0:
	case isRead(apiVersion, Kind(r.Kind)):
		judge(root, &r, &p)
	case isForUs(apiVersion, Kind(r.Kind)):
		p.add(top("apiVersion"), "%q is not a version of %s: use %s/v1, v1beta1 or v1alpha3", apiVersion, r.Kind, Group)
		if m := readMeta(root, &problems{}); m.known {
			r.Ref = m.ref(Kind(r.Kind))
		}
	default:
		r.Ignored = true
	}
	if len(p.found) > 0 {
		r.Problems = p.sorted(root)
	}
	return r
}

// readHead reads the apiVersion and kind of an object.
func readHead(root *yamlpos.Node, r *Reading, p *problems) (apiVersion string) {
	if root.Kind() != yamlpos.Map {
		p.found = root.Problems()
		p.found = append(p.found, Problem{Line: root.Line(), Reason: "a document must be a map with apiVersion, " +
			"kind and metadata, is " + root.Kind().String()})
		return ""
	}
	field := func(name string) string {
		field := root.Get(name)
		if field.Kind() != yamlpos.String || field.Text() == "" {
			p.add(top(name), "missing: every object says its apiVersion and kind, such as "+Group+"/v1 and ServiceEntry")
		}
		return field.Text()
	}
	apiVersion, r.Kind = field("apiVersion"), field("kind")
	return apiVersion
}

// isRead reports whether objects of a kind and version are read.
func isRead(apiVersion string, kind Kind) bool {
	group, version, _ := strings.Cut(apiVersion, "/")
	return group == Group && slices.Contains(versions[:], version) && kind.message() != nil
}

// isForUs reports whether objects of a kind would be read but for their version. A silent
// skip would look like an empty registry.
func isForUs(apiVersion string, kind Kind) bool {
	return strings.HasPrefix(apiVersion, Group+"/") && kind.message() != nil
}

// ref returns the reference of the record of an object with this metadata.
func (m *meta) ref(kind Kind) model.Ref {
	return model.Ref{Kind: kind.record(), Key: model.Key{Namespace: m.namespace, Name: m.name}}
}
