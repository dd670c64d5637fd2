package compose

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// endpoint is one instance of a service, with the ports that it serves.
type endpoint struct {
	catalog.Endpoint
	ports []served // by number of the service's port
}

// served is a port of a service and the endpoint's own port for it.
type served struct{ port, at uint32 }

// id distinguishes the endpoint from others of the service, regardless of its attributes.
func (e endpoint) id() string {
	return fmt.Sprint(e.Address, "|", e.Network, "|", e.ports)
}

// serves lists the ports that the endpoint serves.
func (e endpoint) serves() string {
	var b []byte
	for _, s := range e.ports {
		b = append(strconv.AppendUint(b, uint64(s.port), 10), ',')
	}
	return string(b)
}

// servesAll reports whether the endpoint serves every port.
func (e endpoint) servesAll(ports []model.Port) bool {
	return slices.EqualFunc(e.ports, ports, func(s served, p model.Port) bool { return s.port == p.Number })
}

// gathered is the writable endpoints of a service.
type gathered struct {
	endpoints []endpoint
	left      map[string]int // reason → endpoints

	// first is the first endpoint of each record, and next, for each endpoint, the next one of
	// the same record. Both count from 1; 0 means none.
	first map[model.Ref]int32
	next  []int32
}

// gather collects the endpoints of a service from its ports. The catalog lists the
// endpoints of each port; an object of Istio lists the ports of each endpoint. One record
// may serve a port at several addresses; each becomes an endpoint.
func gather(s *catalog.Service, ports []model.Port) gathered {
	most := 0
	for _, port := range ports {
		if e := s.Endpoints(port.Number); e != nil {
			most = max(most, e.Total)
		}
	}
	return gatherFrom(s, ports, most, (*catalog.Endpoints).All)
}

// gatherAt is gather for one address. Endpoints of other addresses do not affect these,
// unless the resolution allows only one for a port.
func gatherAt(s *catalog.Service, ports []model.Port, address string) gathered {
	return gatherFrom(s, ports, 1, func(e *catalog.Endpoints) iter.Seq[catalog.Endpoint] { return e.At(address) })
}

func gatherFrom(s *catalog.Service, ports []model.Port, most int, list func(*catalog.Endpoints) iter.Seq[catalog.Endpoint]) gathered {
	g := gathered{
		left: map[string]int{}, endpoints: make([]endpoint, 0, most), next: make([]int32, 0, most), first: make(map[model.Ref]int32, most),
	}
	seen := map[model.Ref]bool{}
	for _, port := range ports {
		for e := range list(s.Endpoints(port.Number)) {
			if reason := unfit(s, e); reason != "" {
				if !seen[e.Record] {
					seen[e.Record] = true
					g.left[reason]++
				}
				continue
			}
			g.place(e, port.Number, len(ports))
		}
	}
	g.separateSockets(len(ports))
	if s.Resolution == model.ResolutionDNSRoundRobin {
		g.onePerPort()
	}
	slices.SortFunc(g.endpoints, endpoint.compare)
	g.countLabels()
	return g
}

// compare is the order of endpoints in an object.
func (e endpoint) compare(o endpoint) int {
	if order := cmp.Compare(e.Address, o.Address); order != 0 {
		return order // the rest is expensive, and rarely needed
	}
	return cmp.Or(cmp.Compare(e.id(), o.id()), e.Record.Compare(o.Record))
}

// usualPorts is the number of ports for which an endpoint first has room.
const usualPorts = 4

// place records that a record serves one of so many ports.
func (g *gathered) place(e catalog.Endpoint, port uint32, ports int) {
	last := int32(0)
	for i := g.first[e.Record]; i > 0; i = g.next[i-1] {
		known := &g.endpoints[i-1]
		if known.Network == e.Network && known.ports[len(known.ports)-1].port != port {
			known.ports = append(known.ports, served{port, e.Port})
			return
		}
		last = i
	}
	g.endpoints = append(g.endpoints, endpoint{e, append(make([]served, 0, min(ports, usualPorts)), served{port, e.Port})})
	g.next = append(g.next, 0)
	if now := int32(len(g.endpoints)); last > 0 { //nolint:gosec // there are not as many
		g.next[last-1] = now
	} else {
		g.first[e.Record] = now
	}
}

// unfit explains why an endpoint cannot be written at all; empty if it can.
func unfit(s *catalog.Service, e catalog.Endpoint) string {
	switch {
	case e.Health != model.Healthy:
		return notHealthy + strings.ToLower(string(e.Health))
	case s.Resolution == model.ResolutionNone, s.Resolution == model.ResolutionDynamicDNS:
		return "resolution " + string(s.Resolution) + " takes no endpoints"
	case s.Resolution == model.ResolutionStatic && e.Address != "" && !names.IsUnix(e.Address) && !names.IsIP(e.Address):
		return "its address is a name, and resolution STATIC takes IP addresses only"
	case s.Resolution != model.ResolutionStatic && (names.IsUnix(e.Address) || e.Address == ""):
		return "resolution " + string(s.Resolution) + " takes names and IP addresses only"
	}
	return ""
}

// notHealthy is the prefix of the reasons for endpoints without traffic.
const notHealthy = "not healthy: "

// Omitted counts the healthy endpoints of a service that Istio would reject, by reason. It
// is cheap for a service that has none.
func Omitted(s *catalog.Service) (list []LeftOut) {
	if !omits(s) {
		return nil
	}
	left := gather(s, WrittenPorts(s)).left
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		if !strings.HasPrefix(reason, notHealthy) {
			list = append(list, LeftOut{reason, left[reason]})
		}
	}
	return list
}

// omits reports whether a service may have an endpoint that cannot be written.
func omits(s *catalog.Service) bool {
	for _, port := range WrittenPorts(s) {
		endpoints := s.Endpoints(port.Number)
		if s.Resolution == model.ResolutionDNSRoundRobin && endpoints != nil && endpoints.Total > 1 {
			return true
		}
		for e := range endpoints.All() {
			if e.Health == model.Healthy && unfit(s, e) != "" {
				return true
			}
		}
	}
	return false
}

// labels returns the labels of the endpoint that Istio accepts.
func (e endpoint) labels() map[string]string { return labelsOf(e.Instance.Endpoint) }

func labelsOf(e model.Endpoint) map[string]string {
	if e.Labels.Len() == 0 {
		return nil
	}
	labels := make(map[string]string, e.Labels.Len())
	for name, value := range e.Labels.All() {
		if names.IsEndpointLabelKey(name) && names.IsEndpointLabelValue(value) {
			labels[name] = value
		}
	}
	return labels
}

// takesLabels reports whether Istio accepts every label of the endpoint.
func (e endpoint) takesLabels() bool {
	for name, value := range e.Labels.All() {
		if !names.IsEndpointLabelKey(name) || !names.IsEndpointLabelValue(value) {
			return false
		}
	}
	return true
}

// countLabels counts endpoints that are written without some of their labels.
func (g *gathered) countLabels() {
	for _, e := range g.endpoints {
		if !e.takesLabels() {
			g.left["written without labels that Istio does not take"]++
		}
	}
}

// countPorts counts the ports that are left out because no endpoint serves them. It applies
// to DNS names only. An object with such a port and no endpoints would make Istio look up
// the host itself.
func (g *gathered) countPorts(ports []model.Port, parts []part) {
	for _, port := range ports {
		if !slices.ContainsFunc(parts, func(p part) bool { return slices.Contains(p.ports, port) }) {
			g.left[fmt.Sprintf("port %d, which no endpoint serves", port.Number)] = 1
		}
	}
}

// separateSockets makes an endpoint of each port of a unix socket, because Istio accepts a
// socket only in an object with a single port.
func (g *gathered) separateSockets(servicePorts int) {
	if servicePorts < 2 {
		return
	}
	var separate []endpoint
	for _, e := range g.endpoints {
		if !names.IsUnix(e.Address) {
			separate = append(separate, e)
			continue
		}
		for _, s := range e.ports {
			separate = append(separate, endpoint{e.Endpoint, []served{s}})
		}
	}
	g.endpoints = separate
}

// onePerPort keeps the first endpoint of each port.
func (g *gathered) onePerPort() {
	taken := map[uint32]bool{}
	g.endpoints = slices.DeleteFunc(g.endpoints, func(e endpoint) bool {
		if slices.ContainsFunc(e.ports, func(s served) bool { return taken[s.port] }) {
			g.left["resolution DNS_ROUND_ROBIN takes one endpoint for a port"]++
			return true
		}
		for _, s := range e.ports {
			taken[s.port] = true
		}
		return false
	})
}

// size estimates the length of the endpoint in JSON.
func (e endpoint) size() int {
	n := 80 + len(e.Address) + len(e.Network) + len(e.ServiceAccount) + len(e.Locality.Region) + len(e.Locality.Zone) + len(e.Locality.SubZone) + 2 + 80*len(e.ports)
	for name, value := range e.Labels.All() {
		n += len(name) + len(value) + 6
	}
	return n
}
