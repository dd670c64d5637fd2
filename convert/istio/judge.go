package istio

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/smi"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// judge validates an object of a kind that is read or carried, in any form, and makes its
// records if it is valid.
func judge(object *yamlpos.Node, of Definition, o Options, r *Reading, p *problems) {
	p.found = object.Problems()
	m := readMeta(object, p)
	if value, _ := m.spec.Labels.Get(LabelManagedBy); value == ManagedBy && m.known {
		p.found, r.Ignored = nil, true
		return
	}
	if m.known {
		r.Ref = m.ref(of)
	}
	checkForbidden(m.spec.Annotations, of, p)
	r.ResourceVersion = object.Get("metadata").Get("resourceVersion").Text()
	checkTop(object, p)
	if of.IsSMI() {
		r.takeSplit(object, m, o, p)
		return
	}
	message := of.message()
	if of.IsRead() || present(object.Get("spec")) {
		decode(object.Get("spec"), message, p)
	}
	if !p.misfit {
		check(object.Get("spec"), message, m, p)
	}
	if len(p.found) == 0 {
		r.take(object, message, m)
	}
}

func checkTop(object *yamlpos.Node, p *problems) {
	known := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	for key := range object.Fields() {
		if !slices.Contains(known, key.Name) {
			p.add(top(key.Name), "unknown field: %s", hint{key.Name, known})
		}
	}
}

// decode fills the message from the specification, strictly.
func decode(spec *yamlpos.Node, message proto.Message, p *problems) {
	at := top("spec")
	if !present(spec) {
		p.fail(at, "missing: write what the object is to say")
		return
	}
	fill(spec, message.ProtoReflect(), at, p)
}

// check applies the rules that relate several fields, by kind.
func check(spec *yamlpos.Node, message proto.Message, m meta, p *problems) {
	switch entry := message.(type) {
	case *networking.ServiceEntry:
		checkService(spec, entry, m, p)
	case *networking.WorkloadEntry:
		checkEndpoint(spec, entry, top("spec"), p)
	case *networking.WorkloadGroup:
		checkGroup(spec, entry, p)
	case *networking.Sidecar:
		checkSidecar(spec, entry, p)
	}
}

// take makes the records of a valid object.
func (r *Reading) take(object *yamlpos.Node, message proto.Message, m meta) {
	switch entry := message.(type) {
	case *networking.ServiceEntry:
		r.Spec, r.Owned = serviceOf(m.spec, entry), endpointsOf(r.Ref, entry.GetEndpoints())
	case *networking.WorkloadEntry:
		r.Spec = workloadOf(m.spec, entry, healthOf(object.Get("status")))
	case *networking.Sidecar:
		r.Spec = scopeOf(m.spec, entry, object.Get("spec"))
	case *networking.WorkloadGroup:
		r.Spec = model.OpaqueOf(contentOf(r.Kind, m, object.Get("spec")))
	default:
		r.Spec = opaqueOf(m.spec, message)
	}
}

// takeSplit validates a TrafficSplit and makes its record. An object with rules that are not kept
// is rejected in part, and has a record without effect, in place of an earlier one that divides
// calls.
func (r *Reading) takeSplit(object *yamlpos.Node, m meta, o Options, p *problems) {
	_, version, _ := strings.Cut(object.Get("apiVersion").Text(), "/")
	spec, found := smi.Read(object.Get("spec"), smi.Object{
		Version: version, Namespace: m.namespace, Domain: o.Domain, Served: r.ResourceVersion != "",
	})
	for _, problem := range found {
		p.take(problem)
	}
	if len(p.found) > 0 {
		return
	}
	spec.Meta, r.Spec = m.spec, spec
	if spec.NoEffect != "" {
		p.take(Problem{Field: "spec.matches", Reason: spec.NoEffect})
		r.Rejected, p.found = p.sorted(object), nil
	}
}
