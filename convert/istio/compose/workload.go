package compose

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// LabelService marks the WorkloadEntry objects of a service, and is the label by which its
// ServiceEntry selects them; see [ServiceLabel].
const LabelService = "isthmus.io/service"

// longestLabel is the length that Kubernetes allows for the value of a label.
const longestLabel = 63

// ServiceLabel returns the value of [LabelService] for a host: the host itself if
// Kubernetes accepts it, otherwise a derived value that no other host has.
func ServiceLabel(host string) string {
	if names.IsLabelValue(host) && host != "" {
		return host
	}
	suffix := "-" + digest(host)
	name := strings.TrimSuffix(NameOf(host), suffix)
	return strings.Trim(name[:min(len(name), longestLabel-len(suffix))], "-.") + suffix
}

// DefinitionName returns the name of an object with the ports of a service, and without its
// endpoints; see [Layout.workloads].
func DefinitionName(host string) string { return partName(host, "definition") }

// TakesWorkloads reports whether the endpoints of a service may be WorkloadEntry objects.
// With DNS they are a part of the cluster, so each change of one changes the service in any
// case. Other resolutions have no endpoints.
func TakesWorkloads(s *catalog.Service) bool {
	return s.Resolution == model.ResolutionStatic && len(s.Ports) > 0
}

// workloads makes an object of each endpoint that serves every port. The first part selects
// them. Endpoints that serve some ports only are inline, in parts of their own: an object
// with a selector cannot restrict the ports of a selected endpoint. Istio unites the
// endpoints of all parts unconditionally, but the ports of two parts only if both have the
// same selector. If there is an inline part, there is therefore also a part with every port
// and no selector. The service then has every port, whichever part Istio begins with, which
// is the oldest.
func (l Layout) workloads(s *catalog.Service, ports []model.Port, endpoints []endpoint) ([]part, []group) {
	host, selector := s.Key.Host, l.Selector(s.Key.Host)
	var full []endpoint
	partly := map[string][]endpoint{}
	for _, e := range endpoints {
		if e.servesAll(ports) {
			full = append(full, e)
			continue
		}
		serves := e.serves()
		partly[serves] = append(partly[serves], e)
	}
	parts := make([]part, 0, len(full)+1)
	names := workloadNames(host, full)
	for i := range full {
		parts = append(parts, workloadPart(names[i], ports, full[i:i+1], selector))
	}
	parts = append(parts, part{kind: istio.ServiceEntry, name: NameOf(host), ports: ports, selector: selector})
	if len(partly) > 0 {
		parts = append(parts, part{kind: istio.ServiceEntry, name: DefinitionName(host), ports: ports})
	}
	return l.partial(host, ports, partly, parts, nil)
}

func workloadPart(name string, ports []model.Port, one []endpoint, selector map[string]string) part {
	return part{kind: istio.WorkloadEntry, name: name, ports: ports, endpoints: one, labels: selector}
}

// Selector returns the labels that select the WorkloadEntry objects of a host.
func (l Layout) Selector(host string) map[string]string {
	selector := maps.Clone(l.Workloads)
	selector[LabelService] = ServiceLabel(host)
	return selector
}

// workloadNames names the objects of endpoints by their address, or without one by their record, and not
// by their attributes. Endpoints with the same address are numbered.
func workloadNames(host string, endpoints []endpoint) []string {
	prefix, names, seen := NameOf(host)+"-", make([]string, len(endpoints)), make(map[string]int, len(endpoints))
	for i, e := range endpoints {
		place := cmp.Or(e.Address, e.Record.String()) + "\x00" + e.Network + "\x00" + strconv.FormatUint(uint64(e.ports[0].at), 10)
		name := longDigest(host + "\x00" + place)
		if seen[name]++; seen[name] > 1 {
			name = longDigest(host + "\x00" + place + "\x00" + strconv.Itoa(seen[name]))
		}
		names[i] = prefix + name
	}
	return names
}

// partial spreads the endpoints that serve some ports only, by these ports, and adds the
// parts.
func (l Layout) partial(host string, ports []model.Port, partly map[string][]endpoint, parts []part, groups []group) ([]part, []group) {
	for _, serves := range slices.Sorted(maps.Keys(partly)) {
		endpoints := partly[serves]
		first := part{kind: istio.ServiceEntry, name: partName(host, serves+"#0"), ports: portsOf(ports, endpoints[0])}
		more, g := l.spread(host, first, serves, endpoints)
		parts, groups = append(parts, more...), append(groups, g)
	}
	return parts, groups
}
