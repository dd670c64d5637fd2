package istio

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/proto"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// Object is an object as it should be: what we say of it, and nothing else.
type Object struct {
	Kind            Kind
	Namespace, Name string
	Labels          map[string]string
	Annotations     map[string]string
	Spec            proto.Message
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
func fingerprintOf(spec any) fingerprint {
	data, err := json.Marshal(spec)
	if err != nil {
		return fingerprint{} // it came out of JSON
	}
	return sha256.Sum256(data)
}

func (o Object) fingerprint() fingerprint { return sha256.Sum256(convert.AppendSpec(nil, o.Spec)) }

// Observed is an object as the API server has it, in short: what is in the
// specification is known by its fingerprint and 16 bytes for each endpoint, so
// that the view of an API server with a million endpoints is small.
type Observed struct {
	Ref
	UID         string
	Version     string // the API server's resourceVersion
	Labels      map[string]string
	Annotations map[string]string
	host        string // of one that does not tell by an annotation which service it is of
	spec        fingerprint
	sockets     []uint64 // of its endpoints, as [source.Socket] has it; see [source.Baseline]
	members     []member // of the specification, to tell what passes from one object to another
}

// sources are those that an object is made of.
func (o Observed) sources() []string {
	return strings.FieldsFunc(o.Annotations[annotationSources], func(c rune) bool { return c == ',' })
}

// key tells which key an object of ours belongs to.
func (o Observed) key() Key {
	if o.Kind == ServiceEntry {
		return Key{o.Kind, o.Namespace, o.Annotations[annotationService]}
	}
	return Key{o.Kind, o.Namespace, o.Name}
}

// about is the key that an object speaks of, though it may not be marked so: one
// that was handed over by its label alone is of the service of its first host.
func (o Observed) about() Key {
	key := o.key()
	if key.Kind == ServiceEntry && key.Name == "" {
		key.Name = o.host
	}
	return key
}

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
