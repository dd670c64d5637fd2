package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
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
			p.refuse(doc{}, verdict{[]yamlpos.Problem{*document.Broken}})
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

// object takes an object of a kind that is read.
func (p *parser) object(root *yamlpos.Node, kind string, message proto.Message) {
	v := verdict{problems: root.Problems()}
	m := readMeta(root, &v)
	if value, _ := m.spec.Labels.Get(managedBy); value == ours && m.known {
		p.out.ignored[kind]++
		return
	}
	d := doc{}
	if m.known {
		d = p.doc(root, kind, m)
	}
	checkTop(root, &v)
	decode(root.Get("spec"), message, &v)
	if v.ok() {
		p.check(root, message, m.namespace, &v)
	}
	if !v.ok() {
		v.order(root)
		p.refuse(d, v)
		return
	}
	p.accept(d, root, message, m)
}

// doc names an object whose metadata is right.
func (p *parser) doc(root *yamlpos.Node, kind string, m meta) doc {
	kinds := map[string]model.Kind{
		"ServiceEntry": model.KindService, "WorkloadEntry": model.KindWorkload, "Sidecar": model.KindScope,
	}
	recordKind, ok := kinds[kind]
	if !ok {
		recordKind = model.Kind(kind)
	}
	return doc{
		ref:   model.Ref{Kind: recordKind, Key: model.Key{Namespace: m.namespace, Name: m.name}},
		title: kind + " " + m.namespace + "/" + m.name,
		where: p.where(root.Line()),
	}
}

func (p *parser) where(line int) string { return p.place + ":" + strconv.Itoa(line) }

func checkTop(root *yamlpos.Node, v *verdict) {
	known := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	for key := range root.Fields() {
		if !slices.Contains(known, key.Name) {
			v.add(trail{name: key.Name, index: -1}, "unknown field: %s", hint(key.Name, known))
		}
	}
}

// decode fills the message from the specification, strictly.
func decode(spec *yamlpos.Node, message proto.Message, v *verdict) {
	at := trail{name: "spec", index: -1}
	if !present(spec) {
		v.add(at, "missing: write what the object is to say")
		return
	}
	before := len(v.problems)
	checkShape(spec, message.ProtoReflect().Descriptor(), at, v)
	if len(v.problems) > before {
		return
	}
	text, first := spec.JSON()
	if err := protojson.Unmarshal(text, message); err != nil {
		line, reason := protojsonProblem(err.Error())
		v.problems = append(v.problems, yamlpos.Problem{Line: first + line - 1, Field: "spec", Reason: reason})
	}
}

func (p *parser) check(root *yamlpos.Node, message proto.Message, namespace string, v *verdict) {
	switch entry := message.(type) {
	case *networking.ServiceEntry:
		checkService(root.Get("spec"), entry, namespace, v)
	case *networking.WorkloadEntry:
		checkEndpoint(root.Get("spec"), entry, trail{name: "spec", index: -1}, v)
	}
}

func (p *parser) accept(d doc, root *yamlpos.Node, message proto.Message, m meta) {
	switch entry := message.(type) {
	case *networking.ServiceEntry:
		d.object = serviceObject(d.ref, p.place, m.spec, entry)
	case *networking.WorkloadEntry:
		d.object = workloadObject(d.ref, p.place, m.spec, entry, healthOf(root.Get("status")))
	default: // nothing acts on these kinds yet
		p.out.ignored[root.Get("kind").Text()]++
		return
	}
	p.out.docs = append(p.out.docs, d)
}

func (p *parser) refuse(d doc, v verdict) {
	first := v.problems[0]
	d.where = p.where(first.Line)
	d.refusal = &source.Refusal{
		Ref: d.ref, Place: p.place, Object: d.title, Where: d.where, Field: first.Field, Reason: v.reason(),
	}
	p.out.docs = append(p.out.docs, d)
}
