package istio

import (
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
)

// Group and Version are the API group and version in which objects are written. All
// versions of Istio have one schema.
const (
	Group   = "networking.istio.io"
	Version = "v1"
)

// versions are the names under which Istio serves one and the same schema.
var versions = [...]string{"v1", "v1beta1", "v1alpha3"}

// Kind is a kind of object that is read or written.
type Kind string

// The kinds. Objects of any other kind are ignored.
const (
	ServiceEntry  Kind = "ServiceEntry"
	WorkloadEntry Kind = "WorkloadEntry"
	WorkloadGroup Kind = "WorkloadGroup"
	Sidecar       Kind = "Sidecar"
)

// Resource returns the name of the kind in the paths of an API server.
func (k Kind) Resource() string {
	switch k {
	case ServiceEntry:
		return "serviceentries"
	case WorkloadEntry:
		return "workloadentries"
	case WorkloadGroup:
		return "workloadgroups"
	case Sidecar:
		return "sidecars"
	default:
		return ""
	}
}

// message returns an empty specification of the kind; nil if the kind is not read.
func (k Kind) message() proto.Message {
	switch k {
	case ServiceEntry:
		return &networking.ServiceEntry{}
	case WorkloadEntry:
		return &networking.WorkloadEntry{}
	case WorkloadGroup:
		return &networking.WorkloadGroup{}
	case Sidecar:
		return &networking.Sidecar{}
	default:
		return nil
	}
}

// kindOf returns the kind of a specification; empty if that kind is not read.
func kindOf(spec proto.Message) Kind {
	switch spec.(type) {
	case *networking.ServiceEntry:
		return ServiceEntry
	case *networking.WorkloadEntry:
		return WorkloadEntry
	case *networking.WorkloadGroup:
		return WorkloadGroup
	case *networking.Sidecar:
		return Sidecar
	default:
		return ""
	}
}

// record returns the kind of the record that an object of the kind becomes. Carried kinds
// keep their own name.
func (k Kind) record() model.Kind {
	switch k {
	case ServiceEntry:
		return model.KindService
	case WorkloadEntry:
		return model.KindWorkload
	case Sidecar:
		return model.KindScope
	case WorkloadGroup:
	}
	return model.Kind(k)
}

// RecordKind returns the kind of the records that objects of a kind become, by its name.
func RecordKind(kind string) model.Kind { return Kind(kind).record() }

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
func (o Object) Kind() Kind { return kindOf(o.Spec) }

func (o Object) String() string { return title(o.Kind(), o.Namespace, o.Name) }

func title(kind Kind, namespace, name string) string {
	return string(kind) + " " + namespace + "/" + name
}
