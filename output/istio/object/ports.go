package object

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// PortNames are names of ports by number. A handed-over object keeps its old names, and an
// annotation lists them. istiod finds the endpoints of a port by its name, and updates
// endpoints before ports: clients get no endpoints at all if a push falls between the two.
type PortNames map[uint32]string

// PortNamesOf returns the names of a ServiceEntry's ports.
func PortNamesOf(entry *networking.ServiceEntry) PortNames {
	names := make(PortNames, len(entry.GetPorts()))
	for _, p := range entry.GetPorts() {
		if p.GetName() != "" {
			names[p.GetNumber()] = p.GetName()
		}
	}
	return names
}

// ParsePortNames parses the annotation. Invalid entries are skipped: the port then has its
// own name.
func ParsePortNames(text string) PortNames {
	names := PortNames{}
	for one := range strings.SplitSeq(text, ",") {
		number, name, _ := strings.Cut(one, "=")
		if n, err := strconv.ParseUint(number, 10, 16); err == nil && name != "" {
			names[uint32(n)] = name
		}
	}
	return names
}

// String returns the text of the annotation.
func (n PortNames) String() string {
	list := make([]string, 0, len(n))
	for _, number := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%d=%s", number, n[number]))
	}
	return strings.Join(list, ",")
}

// KeptNames returns the names that ports keep in an object.
func (o Observed) KeptNames() PortNames {
	if o.ports != nil {
		return o.ports
	}
	if text, ok := o.Annotations[AnnotationPorts]; ok {
		return ParsePortNames(text)
	}
	return nil
}
