package object

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// Object is a desired object, with our fields only.
type Object struct {
	Kind            Kind
	Namespace, Name string
	Labels          map[string]string
	Annotations     map[string]string
	Spec            proto.Message // nil until Make makes it, see [Object.Whole]

	Make  func() proto.Message
	Print Fingerprint // zero if it is unknown
}

// Whole returns the object with its specification. An object that is in order never needs
// one.
func (o Object) Whole() Object {
	if o.Spec == nil {
		o.Spec = o.Make()
	}
	return o
}

// Ref names an object.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

// String returns the kind, namespace and name.
func (r Ref) String() string { return string(r.Kind) + " " + r.Namespace + "/" + r.Name }

// Compare orders by kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// Ref names the object.
func (o Object) Ref() Ref { return Ref{o.Kind, o.Namespace, o.Name} }

// Manifest returns the object in the form of the API server.
func (o Object) Manifest() map[string]any {
	return map[string]any{
		"apiVersion": convert.Group + "/" + convert.Version,
		"kind":       string(o.Kind),
		"metadata": map[string]any{
			"name": o.Name, "namespace": o.Namespace,
			"labels": anyMap(o.Labels), "annotations": anyMap(o.Annotations),
		},
		"spec": o.SpecMap(),
	}
}

// SpecMap returns the specification in the form of the API server.
func (o Object) SpecMap() (spec map[string]any) {
	if err := json.Unmarshal(convert.AppendSpec(nil, o.Spec), &spec); err != nil {
		panic(err) // the text is valid JSON
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

// Fingerprint identifies a specification. It is a hash of the JSON with fields in the order
// of their names, so equal specifications have equal fingerprints.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a specification in the form of the API server.
func FingerprintOf(spec any) Fingerprint { return sha256.Sum256(convert.AppendDecoded(nil, spec)) }

// Fingerprint returns the fingerprint of the specification.
func (o Object) Fingerprint() Fingerprint {
	if o.Print != (Fingerprint{}) {
		return o.Print
	}
	return FingerprintOfMessage(o.Spec)
}

// FingerprintOfMessage returns the fingerprint of a desired specification.
func FingerprintOfMessage(spec proto.Message) Fingerprint {
	return sha256.Sum256(convert.AppendSpec(nil, spec))
}

// Differs returns in which way an existing object differs; empty if it is in order. Labels
// and annotations that others have added are ignored.
func (o Object) Differs(now Observed) string {
	switch {
	case o.Fingerprint() != now.Spec:
		return "spec"
	case !Includes(now.Labels, o.Labels):
		return "labels"
	case !Includes(now.Annotations, o.Annotations):
		return "annotations"
	}
	return ""
}

// Includes reports whether a map has all entries of another.
func Includes(all, part map[string]string) bool {
	for k, v := range part {
		if got, ok := all[k]; !ok || got != v {
			return false
		}
	}
	return true
}
