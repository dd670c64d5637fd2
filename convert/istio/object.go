package istio

import (
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/model"
)

// Object is an object in its typed form, received from a peer or to be written. Its kind is
// the kind of its specification.
type Object struct {
	Namespace, Name string
	Meta            model.Meta
	// Spec is a message of istio.io/api/networking/v1alpha3. In v1 and v1beta1 the messages
	// have other names.
	Spec proto.Message
}

// Kind returns the kind of the object; empty if its specification is of no kind that is
// read or written.
func (o Object) Kind() Kind {
	if o.Spec == nil {
		return ""
	}
	name := string(o.Spec.ProtoReflect().Descriptor().FullName())
	of, _ := find(func(d *Definition) bool {
		return d.Message == name && (d.IsRead() || d.Name == string(DestinationRule))
	})
	return Kind(of.Name)
}

func (o Object) String() string { return title(string(o.Kind()), o.Namespace, o.Name) }

func title(kind, namespace, name string) string {
	return kind + " " + namespace + "/" + name
}
