package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// portNames are names of ports by number. A handed-over object keeps its old names, and an
// annotation lists them. istiod finds the endpoints of a port by its name, and updates
// endpoints before ports: clients get no endpoints at all if a push falls between the two.
type portNames map[uint32]string

func portNamesOf(entry *networking.ServiceEntry) portNames {
	names := make(portNames, len(entry.GetPorts()))
	for _, p := range entry.GetPorts() {
		if p.GetName() != "" {
			names[p.GetNumber()] = p.GetName()
		}
	}
	return names
}

// parsePortNames parses the annotation. Invalid entries are skipped: the port then has its
// own name.
func parsePortNames(text string) portNames {
	names := portNames{}
	for one := range strings.SplitSeq(text, ",") {
		number, name, _ := strings.Cut(one, "=")
		if n, err := strconv.ParseUint(number, 10, 16); err == nil && name != "" {
			names[uint32(n)] = name
		}
	}
	return names
}

// String returns the text of the annotation.
func (n portNames) String() string {
	list := make([]string, 0, len(n))
	for _, number := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%d=%s", number, n[number]))
	}
	return strings.Join(list, ",")
}

// keptNames returns the names that ports keep in an object.
func (o Observed) keptNames() portNames {
	if o.ports != nil {
		return o.ports
	}
	if text, ok := o.Annotations[annotationPorts]; ok {
		return parsePortNames(text)
	}
	return nil
}

// inUse is the properties of existing objects that the layout of a service depends on.
type inUse struct {
	exists func(name string) bool // of a ServiceEntry
	ports  portNames
}

func (w *Writer) inUse(key Key) inUse {
	first, _ := w.view.object(Ref{ServiceEntry, key.Namespace, compose.NameOf(key.Name)})
	return inUse{w.exists(key), first.keptNames()}
}

// handedOver returns the object that a hand-over would lead to.
func (w *Writer) handedOver(a Action, u *unstructured.Unstructured) Object {
	key := a.key()
	s, ok := w.newest.Load().Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if a.Kind != ServiceEntry || !ok {
		return a.want
	}
	in := inUse{w.exists(key), observedOf(a.Kind, u).keptNames()}
	t, _ := w.config.translate(w.options.Instance, s, w.config.isWorkloads(s, false), in, nil)
	for _, o := range t.Objects {
		if o.Ref() == a.Ref {
			return o.whole()
		}
	}
	return a.want
}
