package istio

import (
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Reading is what became of one object that was read. One of four holds: it is
// Ignored or Echoed, it is invalid and has Problems, or it is valid and has a Spec. A
// valid one that a registry made may have Rejected parts.
type Reading struct {
	// Kind is what the object says it is; empty if it does not.
	Kind string
	// Ref names the record that the object becomes, without a source. It is zero
	// if the metadata does not tell which object it is.
	Ref model.Ref
	// ResourceVersion is that of the API server, if the object came from one.
	ResourceVersion string
	// Line is where the object begins in its text, from 1; zero without a text.
	Line int

	// Ignored says that the object is of a kind that is not read, or was written
	// by an Isthmus: reading it back would make Isthmus its own source.
	Ignored bool
	// Echoed says that the object came through the Isthmus that reads it, and is left out;
	// [Reading.WithoutEchoes] sets it.
	Echoed bool
	// Problems are all that is wrong with an invalid object, in the order of its text.
	Problems []Problem
	// Undecoded says that nothing of its content can be decoded: it is no message of
	// its kind. [FromResource] sets it.
	Undecoded bool

	// Rejected is what is bad of a valid object that a registry made, and was left out:
	// endpoints, labels of endpoints, and ports that no endpoint serves.
	Rejected []Problem

	// Spec is that of the record a valid object becomes, and Owned what comes and
	// goes with it: the endpoints in a ServiceEntry.
	Spec  model.Spec
	Owned []Owned
	// Path is the way that a resource took through other Isthmuses. PortPaths are those of
	// a service's ports, by number, that took another.
	Path      model.Path
	PortPaths map[uint32]model.Path
}

// Owned is a record that another one owns.
type Owned struct {
	Name string // of the record: that of its owner, a slash, and what tells it apart
	Spec model.Spec
	Path model.Path
}

// Valid reports whether the object is valid, and not ignored.
func (r *Reading) Valid() bool { return r.Spec != nil }

// String names the object for people, such as "ServiceEntry shop/reviews"; it is
// empty if it is not clear which object it is.
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

// Rejection returns what a source says of an invalid object, or of what was left out of
// a valid one. where is for people, and says where the first problem is.
func (r *Reading) Rejection(place, where string) source.Rejection {
	out := source.Rejection{Ref: r.Ref, Place: place, Object: r.String(), Where: where}
	if r.Valid() {
		out.Field, out.Reason = r.Rejected[0].Field, reason(r.Rejected)+"; the rest of the object is applied"
	} else {
		out.Field, out.Reason = r.Problems[0].Field, reason(r.Problems)
	}
	return out
}
