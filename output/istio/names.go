package istio

import (
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// The marks of an own object. All of them are API: see docs/reference/istio.md.
const (
	labelManagedBy = convert.LabelManagedBy
	managedBy      = convert.ManagedBy
	labelInstance  = "isthmus.io/instance"
	labelService   = compose.LabelService // of WorkloadEntry objects, which it selects

	annotationSources = "isthmus.io/sources"    // the sources of the object's records
	annotationService = "isthmus.io/service"    // the host, for the objects of a service
	annotationPorts   = "isthmus.io/port-names" // the port names that ports keep, see [portNames]

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

// Key names objects that are reconciled together: all objects of a service, or the object
// of a scope.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string // the host, or the name of the scope's object
}

// kinds returns the kinds of the objects that belong to the key.
func (k Key) kinds() []Kind {
	if k.Kind == ServiceEntry {
		return []Kind{ServiceEntry, WorkloadEntry}
	}
	return []Kind{k.Kind}
}

func (k Key) String() string { return string(k.Kind) + " " + k.Namespace + "/" + k.Name }

// marks returns the labels of all objects that an instance writes.
func marks(instance string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, labelInstance: instance}
}
