package object

import (
	"cmp"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/model"
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
	host        string // of a ServiceEntry without an annotation for its service, or of a DestinationRule
	Spec        Fingerprint
	Sockets     []uint64          // of its endpoints, by [source.Socket]; see [source.Baseline]
	Selectable  map[string]string // of a WorkloadEntry that Isthmus has not written: in Istio's combination
	ports       PortNames         // of a ServiceEntry that Isthmus has not written
	Selector    map[string]string // of a ServiceEntry with endpoints in objects of their own
	Members     []Member          // of the specification, to detect endpoints that move between objects
}

// Sources returns the sources of an object.
func (o Observed) Sources() []string {
	return strings.FieldsFunc(o.Annotations[AnnotationSources], func(c rune) bool { return c == ',' })
}

// Key returns the key that an own object belongs to. Earlier versions annotated the host as its
// registry writes it.
func (o Observed) Key() Key {
	switch o.Kind {
	case ServiceEntry:
		return Key{ServiceEntry, o.Namespace, model.Name(o.Annotations[AnnotationService])}
	case DestinationRule:
		return Key{DestinationRule, o.Namespace, model.Name(cmp.Or(o.Annotations[AnnotationService], o.host))}
	case WorkloadEntry: // for most hosts, the label is the host itself
		return Key{ServiceEntry, o.Namespace, model.Name(cmp.Or(o.Annotations[AnnotationService], o.Labels[LabelService]))}
	default:
		return Key{o.Kind, o.Namespace, o.Name}
	}
}

// IsForeign reports whether a ServiceEntry has been handed over, and not been written yet.
func (o Observed) IsForeign() bool { return o.Kind == ServiceEntry && o.ports != nil }

// IsDefinition reports whether the object defines the ports of a service, for other objects
// that have only some of them.
func (o Observed) IsDefinition() bool {
	return o.Kind == ServiceEntry && o.Name == compose.DefinitionName(o.About().Name)
}

// About returns the key of an object, even if it is not annotated: an object handed over by
// its label alone belongs to the service of its first host.
func (o Observed) About() Key {
	key := o.Key()
	if key.Kind == ServiceEntry && key.Name == "" {
		key.Name = o.host
	}
	return key
}

// Observe returns the short form of an object.
func Observe(kind Kind, u *unstructured.Unstructured) Observed {
	o := Observed{
		Ref: Ref{kind, u.GetNamespace(), u.GetName()},
		UID: string(u.GetUID()), Version: u.GetResourceVersion(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
		Spec: FingerprintOf(u.Object["spec"]),
	}
	if kind == WorkloadEntry {
		entry := convert.WorkloadOutlineOf(u.Object["spec"])
		o.Sockets, o.Members = socketOf(entry), MembersOf(entry)
		if _, own := o.Labels[LabelService]; !own {
			labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "labels")
			o.Selectable = Together(labels, o.Labels)
		}
	}
	if kind == DestinationRule {
		o.host, _, _ = unstructured.NestedString(u.Object, "spec", "host")
	}
	if kind != ServiceEntry {
		return o
	}
	entry := convert.OutlineOf(u.Object["spec"])
	o.Selector = entry.GetWorkloadSelector().GetLabels()
	o.Sockets, o.Members = socketsOf(entry), MembersOf(entry)
	if _, written := o.Annotations[AnnotationService]; !written {
		o.ports = PortNamesOf(entry)
		if hosts := entry.GetHosts(); len(hosts) > 0 {
			o.host = hosts[0]
		}
	}
	return o
}

// Together returns a map with the entries of both; ours take precedence.
func Together(all, ours map[string]string) map[string]string {
	union := make(map[string]string, len(all)+len(ours))
	maps.Copy(union, all)
	maps.Copy(union, ours)
	return union
}
