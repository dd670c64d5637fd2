package kubernetes

import (
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// portList are the ports at which an endpoint serves. It is never written to after its
// creation.
type portList struct {
	list      []slicePort
	signature string // the same for the same ports
}

// slicePort is a port under its name in the Service.
type slicePort struct {
	name   string
	number uint32 // zero for the target port of the Service
}

func readPorts(ports []discoveryv1.EndpointPort) *portList {
	list := make([]slicePort, 0, len(ports))
	for i := range ports {
		list = append(list, slicePort{value(ports[i].Name), uint32(value(ports[i].Port))})
	}
	return newPortList(list)
}

func newPortList(list []slicePort) *portList {
	texts := make([]string, 0, len(list))
	for _, p := range list {
		texts = append(texts, p.name+"="+strconv.FormatUint(uint64(p.number), 10))
	}
	slices.Sort(texts)
	return &portList{list, strings.Join(texts, ",")}
}

// with adds the ports of an older slice. If both have a name, the number of the newer one
// counts.
func (l *portList) with(older *portList) *portList {
	union := slices.Clip(l.list)
	for _, p := range older.list {
		if !slices.ContainsFunc(union, func(o slicePort) bool { return o.name == p.name }) {
			union = append(union, p)
		}
	}
	if len(union) == len(l.list) {
		return l
	}
	return newPortList(union)
}
