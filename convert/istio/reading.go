package istio

import (
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Reading is the result of reading one object. There are four cases: the object is Ignored
// or Echoed, or it is invalid and has Problems, or it is valid and has a Spec. A valid
// object that a registry made may have Rejected parts.
type Reading struct {
	// Kind is the declared kind of the object; empty if it has none.
	Kind string
	// Ref names the record that the object becomes, without a source. It is zero if the
	// metadata does not identify the object.
	Ref model.Ref
	// ResourceVersion is the API server's, if the object came from one.
	ResourceVersion string
	// Line is the first line of the object in its text, from 1; zero without a text.
	Line int

	// Ignored means that the object is of a kind that is not read, or was written by an
	// Isthmus: reading it back would make Isthmus its own source.
	Ignored bool
	// Echoed means that the object came through the Isthmus that reads it, and is left out;
	// [Reading.WithoutEchoes] sets it.
	Echoed bool
	// Problems are all faults of an invalid object, in the order of its text.
	Problems []Problem
	// Undecoded means that its content cannot be decoded at all: it is no message of its kind.
	// [FromResource] sets it.
	Undecoded bool

	// Rejected are the bad parts of a valid object that a registry made. They were left out:
	// endpoints, labels of endpoints, and ports that no endpoint serves.
	Rejected []Problem

	// Spec is the specification of the record of a valid object. Owned are the records that it
	// owns: the endpoints in a ServiceEntry.
	Spec  model.Spec
	Owned []Owned
	// Path is the resource's path. PortPaths are the different paths of a service's ports, by
	// number.
	Path      model.Path
	PortPaths map[uint32]model.Path
}

// Owned is a record that another one owns.
type Owned struct {
	Name string // of the record: its owner's name, a slash, and a distinguishing suffix
	Spec model.Spec
	Path model.Path
}

// Valid reports whether the object is valid, and not ignored.
func (r *Reading) Valid() bool { return r.Spec != nil }

// String returns the object's name for people, such as "ServiceEntry shop/reviews"; it is
// empty if the object is not identified.
func (r *Reading) String() string {
	if r.Ref == (model.Ref{}) {
		return ""
	}
	return title(Kind(r.Kind), r.Ref.Namespace, r.Ref.Name)
}

// Listed returns a valid object as a source lists it.
func (r *Reading) Listed(place string) source.Object {
	object := source.Object{Record: model.Record{Ref: r.Ref, Path: r.Path, Place: place, Spec: r.Spec}}
	if len(r.Owned) == 0 {
		return object
	}
	object.Owned = make([]model.Record, len(r.Owned))
	for i, o := range r.Owned {
		ref := r.Ref
		ref.Kind, ref.Name = model.KindEndpoint, o.Name
		object.Owned[i] = model.Record{Ref: ref, Owner: r.Ref, Path: o.Path, Spec: o.Spec}
	}
	return object
}

// Rejection returns the rejection of an invalid object, or of the parts left out of a valid
// one. where is the place of the first problem, for people.
func (r *Reading) Rejection(place, where string) source.Rejection {
	out := source.Rejection{Ref: r.Ref, Place: place, Object: r.String(), Where: where}
	if r.Valid() {
		out.Field, out.Reason = r.Rejected[0].Field, reason(r.Rejected)+"; the rest of the object is applied"
	} else {
		out.Field, out.Reason = r.Problems[0].Field, reason(r.Problems)
	}
	return out
}
