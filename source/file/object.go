package file

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

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
	if !v.misfit {
		check(root.Get("spec"), message, m, &v)
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
		v.fail(at, "missing: write what the object is to say")
		return
	}
	fill(spec, message.ProtoReflect(), at, v)
}

// check applies the rules that relate several fields, by kind.
func check(spec *yamlpos.Node, message proto.Message, m meta, v *verdict) {
	switch entry := message.(type) {
	case *networking.ServiceEntry:
		checkService(spec, entry, m, v)
	case *networking.WorkloadEntry:
		checkEndpoint(spec, entry, trail{name: "spec", index: -1}, v)
	case *networking.WorkloadGroup:
		checkGroup(spec, entry, v)
	case *networking.Sidecar:
		checkSidecar(spec, entry, v)
	}
}

func (p *parser) accept(d doc, root *yamlpos.Node, message proto.Message, m meta) {
	switch entry := message.(type) {
	case *networking.ServiceEntry:
		d.object = serviceObject(d.ref, p.place, m.spec, entry)
		d.owned = endpointsOf(d.ref, entry.GetEndpoints())
	case *networking.WorkloadEntry:
		d.object = workloadObject(d.ref, p.place, m.spec, entry, healthOf(root.Get("status")))
	case *networking.Sidecar:
		d.object = scopeObject(d.ref, p.place, m.spec, entry, root.Get("spec"))
	default:
		d.object = keptObject(d.ref, p.place, root, m)
	}
	p.out.docs = append(p.out.docs, d)
}

func (p *parser) refuse(d doc, v verdict) {
	first := v.problems[0]
	d.refusal = &source.Refusal{
		Ref: d.ref, Place: p.place, Object: d.title, Where: p.where(first.Line), Field: first.Field, Reason: v.reason(),
	}
	p.out.docs = append(p.out.docs, d)
}
