package file

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

const group = "networking.istio.io"

// versions are the names under which Istio serves one and the same schema.
var versions = [...]string{"v1", "v1beta1", "v1alpha3"}

// parser turns the text of one file into its objects. It is a pure function in
// the form of a type, for what its steps share.
type parser struct {
	place string
	out   *version
}

// parse reads the text of the file at place.
func parse(place string, text []byte) *version {
	p := parser{place, &version{size: len(text), ignored: map[string]int{}}}
	for document := range yamlpos.Documents(text) {
		if document.Broken != nil {
			p.refuse(doc{}, verdict{problems: []yamlpos.Problem{*document.Broken}})
			continue
		}
		p.document(document.Root)
	}
	return p.out
}

// document takes one document, or each of the objects in a list.
func (p *parser) document(root *yamlpos.Node) {
	apiVersion, kind, v := readHead(root)
	if !v.ok() {
		v.order(root)
		p.refuse(doc{}, v)
		return
	}
	if apiVersion == "v1" && kind == "List" {
		p.list(root)
		return
	}
	message := messageFor(apiVersion, kind)
	if message == nil {
		p.other(root, apiVersion, kind)
		return
	}
	p.object(root, kind, message)
}

// readHead reads what every object says first: what it is.
func readHead(root *yamlpos.Node) (apiVersion, kind string, v verdict) {
	if root.Kind() != yamlpos.Map {
		v.problems = append(root.Problems(), yamlpos.Problem{Line: root.Line(), Reason: fmt.Sprintf(
			"a document must be a map with apiVersion, kind and metadata, is %s", root.Kind())})
		return "", "", v
	}
	read := func(name string) string {
		field := root.Get(name)
		if field.Kind() != yamlpos.String || field.Text() == "" {
			v.add(trail{name: name, index: -1}, "missing: every object says its apiVersion and kind, such as "+
				group+"/v1 and ServiceEntry")
		}
		return field.Text()
	}
	return read("apiVersion"), read("kind"), v
}

func (p *parser) list(root *yamlpos.Node) {
	items := root.Get("items")
	if present(items) && items.Kind() != yamlpos.List {
		v := verdict{}
		v.add(trail{name: "items", index: -1}, "must be a list, is %s", items.Kind())
		v.order(root)
		p.refuse(doc{}, v)
		return
	}
	for _, item := range items.Items() {
		p.document(item)
	}
}

// messageFor returns an empty message of the kind; nil if it is not one that is read.
func messageFor(apiVersion, kind string) proto.Message {
	if g, version, _ := strings.Cut(apiVersion, "/"); g != group || !slices.Contains(versions[:], version) {
		return nil
	}
	switch kind {
	case "ServiceEntry":
		return &networking.ServiceEntry{}
	case "WorkloadEntry":
		return &networking.WorkloadEntry{}
	case "WorkloadGroup":
		return &networking.WorkloadGroup{}
	case "Sidecar":
		return &networking.Sidecar{}
	default:
		return nil
	}
}

// other counts an object of a kind that is not read. One that would be but for
// its version is refused: it is meant for us, and passing over it in silence
// would look like an empty registry.
func (p *parser) other(root *yamlpos.Node, apiVersion, kind string) {
	if strings.HasPrefix(apiVersion, group+"/") && messageFor(group+"/v1", kind) != nil {
		v := verdict{}
		v.add(trail{name: "apiVersion", index: -1}, "%q is not a version of %s: use %s/v1, v1beta1 or v1alpha3",
			apiVersion, kind, group)
		v.order(root)
		d := doc{}
		if m := readMeta(root, &verdict{}); m.known {
			d = p.doc(root, kind, m)
		}
		p.refuse(d, v)
		return
	}
	p.out.ignored[kind]++
}
