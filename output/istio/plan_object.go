package istio

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// Object is an object as it should be: what we say of it, and nothing else.
type Object struct {
	Kind            Kind
	Namespace, Name string
	Labels          map[string]string
	Annotations     map[string]string
	Spec            proto.Message // nil while make would make it, see [Object.whole]

	make  func() proto.Message
	print fingerprint // zero if it is not known
}

// whole is the object with its specification. One that is known to be as it
// should be never needs it.
func (o Object) whole() Object {
	if o.Spec == nil {
		o.Spec = o.make()
	}
	return o
}

// Ref names an object.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

func (r Ref) String() string { return string(r.Kind) + " " + r.Namespace + "/" + r.Name }

func (r Ref) compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// Ref names the object.
func (o Object) Ref() Ref { return Ref{o.Kind, o.Namespace, o.Name} }

// Manifest is the object in the form of the API server.
func (o Object) Manifest() map[string]any {
	return map[string]any{
		"apiVersion": convert.Group + "/" + convert.Version,
		"kind":       string(o.Kind),
		"metadata": map[string]any{
			"name": o.Name, "namespace": o.Namespace,
			"labels": anyMap(o.Labels), "annotations": anyMap(o.Annotations),
		},
		"spec": o.spec(),
	}
}

// spec is the specification in the form of the API server.
func (o Object) spec() (spec map[string]any) {
	if err := json.Unmarshal(convert.AppendSpec(nil, o.Spec), &spec); err != nil {
		panic(err) // it is JSON
	}
	return spec
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// fingerprint stands for a specification: it is of the JSON in which fields come
// in the order of their names, so equal specifications have equal ones.
type fingerprint [sha256.Size]byte

// fingerprintOf is that of a specification in the form of the API server.
func fingerprintOf(spec any) fingerprint { return sha256.Sum256(convert.AppendDecoded(nil, spec)) }

func (o Object) fingerprint() fingerprint {
	if o.print != (fingerprint{}) {
		return o.print
	}
	return printOf(o.Spec)
}

func printOf(spec proto.Message) fingerprint { return sha256.Sum256(convert.AppendSpec(nil, spec)) }

// differs says in which way an object is not as it should be; empty if it is.
// Labels and annotations that others have added are theirs.
func (o Object) differs(now Observed) string {
	switch {
	case o.fingerprint() != now.spec:
		return "spec"
	case !includes(now.Labels, o.Labels):
		return "labels"
	case !includes(now.Annotations, o.Annotations):
		return "annotations"
	}
	return ""
}

func includes(all, part map[string]string) bool {
	for k, v := range part {
		if got, ok := all[k]; !ok || got != v {
			return false
		}
	}
	return true
}
