package istio

import (
	"cmp"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// Observed is the short form of an object in the API server. Its specification is
// represented by a Fingerprint and 16 bytes for each endpoint. The view of an API server
// with a million endpoints is therefore small.
type Observed struct {
	Ref
	UID         string
	Version     string // the API server's resourceVersion
	Labels      map[string]string
	Annotations map[string]string
	host        string // of an object without an annotation for its service
	spec        Fingerprint
	sockets     []uint64          // of its endpoints, by [source.Socket]; see [source.Baseline]
	selectable  map[string]string // of a WorkloadEntry that Isthmus has not written: in Istio's combination
	ports       PortNames         // of a ServiceEntry that Isthmus has not written
	selector    map[string]string // of a ServiceEntry with endpoints in objects of their own
	members     []member          // of the specification, to detect endpoints that move between objects
}

// sources returns the sources of an object.
func (o Observed) sources() []string {
	return strings.FieldsFunc(o.Annotations[AnnotationSources], func(c rune) bool { return c == ',' })
}

// key returns the key that an own object belongs to.
func (o Observed) key() Key {
	switch o.Kind {
	case ServiceEntry:
		return Key{ServiceEntry, o.Namespace, o.Annotations[AnnotationService]}
	case WorkloadEntry: // for most hosts, the label is the host itself
		return Key{ServiceEntry, o.Namespace, cmp.Or(o.Annotations[AnnotationService], o.Labels[LabelService])}
	default:
		return Key{o.Kind, o.Namespace, o.Name}
	}
}

// isForeign reports whether a ServiceEntry has been handed over, and not been written yet.
func (o Observed) isForeign() bool { return o.Kind == ServiceEntry && o.ports != nil }

// isDefinition reports whether the object defines the ports of a service, for other objects
// that have only some of them.
func (o Observed) isDefinition() bool {
	return o.Kind == ServiceEntry && o.Name == convert.DefinitionName(o.about().Name)
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

// observedOf returns the short form of an object.
func observedOf(kind Kind, u *unstructured.Unstructured) Observed {
	o := Observed{
		Ref: Ref{kind, u.GetNamespace(), u.GetName()},
		UID: string(u.GetUID()), Version: u.GetResourceVersion(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
		spec: FingerprintOf(u.Object["spec"]),
	}
	if kind == WorkloadEntry {
		entry := convert.WorkloadOutlineOf(u.Object["spec"])
		o.sockets, o.members = socketOf(entry), MembersOf(entry)
		if _, own := o.Labels[LabelService]; !own {
			labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "labels")
			o.selectable = together(labels, o.Labels)
		}
	}
	if kind != ServiceEntry {
		return o
	}
	entry := convert.OutlineOf(u.Object["spec"])
	o.selector = entry.GetWorkloadSelector().GetLabels()
	o.sockets, o.members = socketsOf(entry), MembersOf(entry)
	if _, written := o.Annotations[AnnotationService]; !written {
		o.ports = PortNamesOf(entry)
		if hosts := entry.GetHosts(); len(hosts) > 0 {
			o.host = hosts[0]
		}
	}
	return o
}

// together returns a map with the entries of both; ours take precedence.
func together(all, ours map[string]string) map[string]string {
	union := make(map[string]string, len(all)+len(ours))
	maps.Copy(union, all)
	maps.Copy(union, ours)
	return union
}
