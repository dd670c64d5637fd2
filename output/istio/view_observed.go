package istio

import (
	"cmp"
	"strings"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

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
	sockets     []uint64          // of its endpoints, as [source.Socket] has it; see [source.Baseline]
	labels      map[string]string // of a WorkloadEntry that Isthmus has not written: as Istio has them
	ports       portNames         // of a ServiceEntry that Isthmus has not written
	selector    map[string]string // of a ServiceEntry whose endpoints are objects of their own
	members     []member          // of the specification, to tell what passes from one object to another
}

// sources are those that an object is made of.
func (o Observed) sources() []string {
	return strings.FieldsFunc(o.Annotations[annotationSources], func(c rune) bool { return c == ',' })
}

// key tells which key an object of ours belongs to.
func (o Observed) key() Key {
	switch o.Kind {
	case ServiceEntry:
		return Key{ServiceEntry, o.Namespace, o.Annotations[annotationService]}
	case WorkloadEntry: // of most hosts, the label is the host itself
		return Key{ServiceEntry, o.Namespace, cmp.Or(o.Annotations[annotationService], o.Labels[labelService])}
	default:
		return Key{o.Kind, o.Namespace, o.Name}
	}
}

// isForeign reports whether a ServiceEntry has been handed over, and not been written yet.
func (o Observed) isForeign() bool { return o.Kind == ServiceEntry && o.ports != nil }

// isDefinition reports whether it is the object that says which ports a service
// has, for those that have some of them only.
func (o Observed) isDefinition() bool {
	return o.Kind == ServiceEntry && o.Name == convert.DefinitionName(o.about().Name)
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
