package xds_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// records is what all sources say, and the naive reference: every question is
// answered by looking through all of it.
type records map[model.Ref]model.Record

// viewer is whose view it is.
type viewer struct {
	kind, namespace string
	labels          model.Labels
}

// view says what a client should hold if it asked for everything: by type and
// name, a description of the content.
func (r records) view(order []string, by viewer) map[string]map[string]string {
	v := map[string]map[string]string{cds: {}, eds: {}, lds: {}, rds: {}}
	hosts := map[string]bool{}
	for _, record := range r {
		if s, ok := record.Spec.(model.Service); ok {
			for host := range s.Hosts.All() {
				hosts[host] = true
			}
		}
	}
	for host := range hosts {
		if m := r.chosen(order, by, host); m != nil {
			m.describe(v, by.kind)
		}
	}
	return v
}

// merged is a service after merging.
type merged struct {
	host        string
	ports       map[uint32]model.Port
	resolutions map[uint32]model.Resolution         // by port, of the first record with it
	places      map[uint32]map[place]model.Endpoint // by port of the service
}

type place struct {
	address string
	port    uint32
}

// chosen is the service that a host names for a viewer; nil if there is none.
func (r records) chosen(order []string, who viewer, host string) *merged {
	type candidate struct {
		home string
		rank int
		by   []model.Record
	}
	var all []candidate
	hosts := r.scope(order, who)
	for _, home := range r.homes(host) {
		by := r.about(order, home, host)
		first := by[0].Spec.(model.Service)
		if visible(first.ExportTo, who.namespace, home) && inScope(hosts, who.namespace, home, host) {
			all = append(all, candidate{home, positionOf(order, by[0].Source), by})
		}
	}
	if len(all) == 0 {
		return nil
	}
	best := slices.MinFunc(all, func(a, b candidate) int {
		own := func(c candidate) int {
			if c.home == who.namespace {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.home, b.home))
	})
	return r.merge(order, host, best.by)
}

func positionOf(order []string, source string) int {
	if at := slices.Index(order, source); at >= 0 {
		return at
	}
	return len(order)
}

func visible(exportTo model.List[string], namespace, home string) bool {
	if exportTo.Len() == 0 || exportTo.Contains("*") {
		return true
	}
	return namespace != "" && (exportTo.Contains(namespace) || exportTo.Contains(".") && namespace == home)
}

// scope lists the hosts that a viewer's scope lets it see; nil if it has none.
func (r records) scope(order []string, who viewer) []string {
	var own, general []model.Record
	for _, record := range r {
		s, ok := record.Spec.(model.Scope)
		switch selects := s.WorkloadSelector.Len() > 0; {
		case ok && who.namespace != "" && record.Namespace == who.namespace && who.labels.Includes(s.WorkloadSelector):
			own = append(own, record)
		case ok && record.Namespace == rootNamespace && !selects:
			general = append(general, record)
		}
	}
	for _, list := range [][]model.Record{own, general} {
		if len(list) == 0 {
			continue
		}
		first := slices.MinFunc(list, func(a, b model.Record) int {
			general := func(r model.Record) int { return min(r.Spec.(model.Scope).WorkloadSelector.Len(), 1) }
			return cmp.Or(-cmp.Compare(general(a), general(b)),
				cmp.Compare(positionOf(order, a.Source), positionOf(order, b.Source)), a.Compare(b.Ref))
		})
		return first.Spec.(model.Scope).Hosts.Slice()
	}
	return nil
}

func inScope(hosts []string, own, home, host string) bool {
	return hosts == nil || slices.ContainsFunc(hosts, func(pattern string) bool {
		namespace, name, _ := strings.Cut(pattern, "/")
		if namespace == "~" || namespace == "." && home != own || namespace != "." && namespace != "*" && namespace != home {
			return false
		}
		suffix, wild := strings.CutPrefix(name, "*")
		return name == host || wild && strings.HasSuffix(host, suffix)
	})
}

// homes lists the namespaces that have a service of a host.
func (r records) homes(host string) []string {
	found := map[string]bool{}
	for _, record := range r {
		if s, ok := record.Spec.(model.Service); ok && s.Hosts.Contains(host) {
			found[record.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// about lists the records of a service in merge order.
func (r records) about(order []string, home, host string) (by []model.Record) {
	for _, record := range r {
		if s, ok := record.Spec.(model.Service); ok && record.Namespace == home && s.Hosts.Contains(host) {
			by = append(by, record)
		}
	}
	slices.SortFunc(by, func(a, b model.Record) int {
		return cmp.Or(cmp.Compare(positionOf(order, a.Source), positionOf(order, b.Source)), a.Compare(b.Ref))
	})
	return by
}

func (r records) merge(order []string, host string, by []model.Record) *merged {
	m := &merged{
		host: host, ports: map[uint32]model.Port{}, places: map[uint32]map[place]model.Endpoint{}, resolutions: map[uint32]model.Resolution{},
	}
	first := by[0].Spec.(model.Service)
	winners := map[uint32]map[place]model.Record{}
	for _, record := range by {
		s := record.Spec.(model.Service)
		if s.Resolution == model.ResolutionNone && first.Resolution != s.Resolution && record.Source != by[0].Source {
			continue // it would take the connections that are for no service
		}
		for port := range s.Ports.All() {
			if _, ok := m.ports[port.Number]; !ok {
				m.ports[port.Number], m.resolutions[port.Number] = port, s.Resolution
				m.places[port.Number], winners[port.Number] = map[place]model.Endpoint{}, map[place]model.Record{}
			}
			if m.resolutions[port.Number] != s.Resolution {
				continue
			}
			for _, instance := range r.instances(record, host) {
				e := endpointIn(instance)
				at := place{e.Address, listens(port, e)}
				won, taken := winners[port.Number][at]
				if taken && cmp.Or(cmp.Compare(positionOf(order, won.Source), positionOf(order, instance.Source)), unserving(won)-unserving(instance), won.Compare(instance.Ref)) <= 0 {
					continue
				}
				winners[port.Number][at] = instance
				m.places[port.Number][at] = e
			}
		}
	}
	return m
}

// instances lists the records that say where a service record runs.
func (r records) instances(service model.Record, host string) (list []model.Record) {
	s := service.Spec.(model.Service)
	owned := false
	for _, record := range r {
		switch spec := record.Spec.(type) {
		case model.Endpoint:
			owner, _, _ := strings.Cut(record.Name, "/")
			if record.Source == service.Source && record.Namespace == service.Namespace && owner == service.Name {
				list, owned = append(list, record), true
			}
		case model.Workload:
			if record.Namespace == service.Namespace && s.WorkloadSelector.Len() > 0 && spec.Endpoint.Labels.Includes(s.WorkloadSelector) {
				list = append(list, record)
			}
		}
	}
	if s.Resolution == model.ResolutionDNS && !owned && s.WorkloadSelector.Len() == 0 {
		stand := service // the host itself is the name to resolve
		stand.Spec = model.Endpoint{Address: host}
		list = append(list, stand)
	}
	return list
}

// unserving is 0 for an instance that serves, and 1 for others.
func unserving(r model.Record) int {
	if endpointIn(r).Health == model.Healthy {
		return 0
	}
	return 1
}

func endpointIn(r model.Record) model.Endpoint {
	if w, ok := r.Spec.(model.Workload); ok {
		return w.Endpoint
	}
	return r.Spec.(model.Endpoint)
}

func listens(port model.Port, e model.Endpoint) uint32 {
	if own, ok := e.Ports.Get(port.Name); ok {
		return own
	}
	return cmp.Or(port.TargetPort, port.Number)
}

// describe adds what the service is to clients of a kind.
func (m *merged) describe(v map[string]map[string]string, kind string) {
	for number, port := range m.ports {
		name, listener := fmt.Sprintf("outbound|%d||%s", number, m.host), fmt.Sprintf("%s:%d", m.host, number)
		var places []string
		for at, e := range m.places[number] {
			if e.Health == model.Healthy {
				places = append(places, describePlace(at.address, at.port, max(e.Weight, 1), e.Locality.Zone))
			}
		}
		what := ""
		switch m.resolutions[number] {
		case model.ResolutionStatic:
			what = "EDS"
			v[eds][name] = describePlaces(places)
		case model.ResolutionDNS:
			what = "STRICT_DNS " + describePlaces(places)
			if kind == envoy.KindGRPC {
				if len(places) != 1 {
					continue
				}
				what = "LOGICAL_DNS " + describePlaces(places)
			}
		case model.ResolutionNone:
			if kind == envoy.KindGRPC {
				continue
			}
			what = "ORIGINAL_DST"
		default:
			continue
		}
		if port.Protocol == "HTTP2" || port.Protocol == "GRPC" {
			what = strings.TrimSpace(what) + " HTTP2"
		}
		v[cds][name] = strings.TrimSpace(what)
		if kind == envoy.KindGRPC {
			v[lds][listener], v[rds][name] = name, name
		}
	}
}

func describePlace(address string, port, weight uint32, zone string) string {
	return fmt.Sprintf("%s:%d*%d@%s", address, port, weight, zone)
}

func describePlaces(places []string) string {
	slices.Sort(places)
	return strings.Join(places, " ")
}

// describeResource describes what a client holds in the same words.
func describeResource(r xdsclient.Resource) string {
	switch m := r.Content.(type) {
	case *clusterv3.Cluster:
		what := m.GetType().String() + " "
		if m.GetType() == clusterv3.Cluster_STRICT_DNS || m.GetType() == clusterv3.Cluster_LOGICAL_DNS {
			what += describeAssignment(m.GetLoadAssignment())
		}
		what = strings.TrimSpace(what)
		if len(m.GetTypedExtensionProtocolOptions()) > 0 {
			what += " HTTP2"
		}
		return what
	case *endpointv3.ClusterLoadAssignment:
		return describeAssignment(m)
	}
	if name := r.RouteName(); name != "" {
		return name
	}
	return strings.Join(r.ClusterNames(), " ")
}

func describeAssignment(m *endpointv3.ClusterLoadAssignment) string {
	var places []string
	for _, group := range m.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			a := e.GetEndpoint().GetAddress().GetSocketAddress()
			places = append(places, describePlace(a.GetAddress(), a.GetPortValue(), e.GetLoadBalancingWeight().GetValue(), group.GetLocality().GetZone()))
		}
	}
	return describePlaces(places)
}
