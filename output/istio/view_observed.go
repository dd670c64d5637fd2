package istio

import (
	"cmp"
	"strings"

	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// Observed is the short form of an object in the API server. Its specification is
// represented by a fingerprint and 16 bytes for each endpoint. The view of an API server
// with a million endpoints is therefore small.
type Observed struct {
	Ref
	UID         string
	Version     string // the API server's resourceVersion
	Labels      map[string]string
	Annotations map[string]string
	host        string // of an object without an annotation for its service
	spec        fingerprint
	sockets     []uint64          // of its endpoints, by [source.Socket]; see [source.Baseline]
	labels      map[string]string // of a WorkloadEntry that Isthmus has not written: in Istio's combination
	ports       portNames         // of a ServiceEntry that Isthmus has not written
	selector    map[string]string // of a ServiceEntry with endpoints in objects of their own
	members     []member          // of the specification, to detect endpoints that move between objects
}

// sources returns the sources of an object.
func (o Observed) sources() []string {
	return strings.FieldsFunc(o.Annotations[annotationSources], func(c rune) bool { return c == ',' })
}

// key returns the key that an own object belongs to.
func (o Observed) key() Key {
	switch o.Kind {
	case ServiceEntry:
		return Key{ServiceEntry, o.Namespace, o.Annotations[annotationService]}
	case WorkloadEntry: // for most hosts, the label is the host itself
		return Key{ServiceEntry, o.Namespace, cmp.Or(o.Annotations[annotationService], o.Labels[labelService])}
	default:
		return Key{o.Kind, o.Namespace, o.Name}
	}
}

// isForeign reports whether a ServiceEntry has been handed over, and not been written yet.
func (o Observed) isForeign() bool { return o.Kind == ServiceEntry && o.ports != nil }

// isDefinition reports whether the object defines the ports of a service, for other objects
// that have only some of them.
func (o Observed) isDefinition() bool {
	return o.Kind == ServiceEntry && o.Name == compose.DefinitionName(o.about().Name)
}

// about returns the key of an object, even if it is not annotated: an object handed over by
// its label alone belongs to the service of its first host.
func (o Observed) about() Key {
	key := o.key()
	if key.Kind == ServiceEntry && key.Name == "" {
		key.Name = o.host
	}
	return key
}
