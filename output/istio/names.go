package istio

import (
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// What marks an object as ours. All of it is API: see docs/reference/istio.md.
const (
	labelManagedBy = convert.LabelManagedBy
	managedBy      = convert.ManagedBy
	labelInstance  = "isthmus.io/instance"
	labelService   = convert.LabelService // of WorkloadEntry objects, which are selected by it

	annotationSources = "isthmus.io/sources"    // whose records the object is made of
	annotationService = "isthmus.io/service"    // the host, for the objects of a service
	annotationPorts   = "isthmus.io/port-names" // that ports keep, see [portNames]

	fieldManager = "isthmus"
)

// Kind is a kind of object that is written.
type Kind = convert.Kind

// The kinds.
const (
	ServiceEntry  = convert.ServiceEntry
	WorkloadEntry = convert.WorkloadEntry
	Sidecar       = convert.Sidecar
)

// Key names what is brought to its desired state as one: all objects of a
// service, or the one of a scope.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string // the host, or the name of the scope's object
}

// kinds are those of the objects that belong to the key.
func (k Key) kinds() []Kind {
	if k.Kind == ServiceEntry {
		return []Kind{ServiceEntry, WorkloadEntry}
	}
	return []Kind{k.Kind}
}

func (k Key) String() string { return string(k.Kind) + " " + k.Namespace + "/" + k.Name }

// marks are the labels of all that an instance writes.
func marks(instance string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, labelInstance: instance}
}
