// Package object has the values of Istio's objects in an API server: names and marks, desired
// objects, and the short form of observed ones. It does no I/O, and values are not shared
// between goroutines while they change.
package object

import (
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// The marks of an own object. All of them are API: see docs/reference/istio.md.
const (
	LabelManagedBy = convert.LabelManagedBy
	ManagedBy      = convert.ManagedBy
	LabelInstance  = "isthmus.io/instance"
	LabelService   = compose.LabelService // of WorkloadEntry objects, which it selects

	AnnotationSources = "isthmus.io/sources"    // the sources of the object's records
	AnnotationService = "isthmus.io/service"    // the host, for the objects of a service
	AnnotationPorts   = "isthmus.io/port-names" // the port names that ports keep, see [PortNames]

	FieldManager = "isthmus"
)

// Kind is a kind of object that is written.
type Kind = convert.Kind

// The kinds.
const (
	ServiceEntry    = convert.ServiceEntry
	WorkloadEntry   = convert.WorkloadEntry
	Sidecar         = convert.Sidecar
	DestinationRule = convert.DestinationRule
)

// Key names objects that are reconciled together: all objects with endpoints of a service,
// its DestinationRule, or the object of a scope.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string // the host, or the name of the scope's object
}

// Kinds returns the kinds of the objects that belong to the key.
func (k Key) Kinds() []Kind {
	if k.Kind == ServiceEntry {
		return []Kind{ServiceEntry, WorkloadEntry}
	}
	return []Kind{k.Kind}
}

// String returns the kind, namespace and name.
func (k Key) String() string { return string(k.Kind) + " " + k.Namespace + "/" + k.Name }

// Marks returns the labels of all objects that an instance writes.
func Marks(instance string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelInstance: instance}
}
