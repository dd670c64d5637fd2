package resource

import (
	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

// endpointBlock is the parts of an endpoint's message, in a single allocation.
type endpointBlock struct {
	content  api.Record_Endpoint
	endpoint api.Endpoint
	locality api.Locality
}

func endpoint(e *model.Endpoint) *endpointBlock {
	block := new(endpointBlock)
	m := &block.endpoint
	m.Address, m.AdditionalAddresses = text(e.Address), texts(e.Also)
	m.Ports, m.Exact, m.Labels = portNumbers(e.Ports), e.Exact, labels(e.Labels)
	m.Network, m.Node, m.Weight = text(e.Network), text(e.Node), e.Weight
	m.ServiceAccount, m.Health, m.Registered = text(e.ServiceAccount), text(e.Health), e.Registered
	if l := e.Locality; l != (model.Locality{}) {
		m.Locality = &block.locality
		m.Locality.Region, m.Locality.Zone, m.Locality.SubZone = text(l.Region), text(l.Zone), text(l.SubZone)
	}
	return block
}

func portNumbers(ports model.Map[uint32]) map[string]uint32 {
	if ports.Len() == 0 {
		return nil
	}
	out := make(map[string]uint32, ports.Len())
	for name, number := range ports.All() {
		out[text(name)] = number
	}
	return out
}

func endpointOf(m *api.Endpoint) model.Endpoint {
	l := m.GetLocality()
	return model.Endpoint{
		Address: m.GetAddress(), Also: model.ListOf(m.GetAdditionalAddresses()...),
		Ports: model.MapOf(m.GetPorts()), Exact: m.GetExact(), Labels: model.MapOf(m.GetLabels()),
		Network: m.GetNetwork(), Node: m.GetNode(), Weight: m.GetWeight(),
		ServiceAccount: m.GetServiceAccount(), Health: model.Health(m.GetHealth()), Registered: m.GetRegistered(),
		Locality: model.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()},
	}
}

func workload(w *model.Workload) *api.Workload {
	return &api.Workload{Meta: meta(&w.Meta), Endpoint: &endpoint(&w.Endpoint).endpoint, Only: texts(w.Only)}
}

func workloadOf(r *reader, m *api.Workload) model.Workload {
	return model.Workload{
		Meta: r.meta("workload.meta", m.GetMeta()), Endpoint: endpointOf(m.GetEndpoint()), Only: model.ListOf(m.GetOnly()...),
	}
}

// mergedEndpoint leaves ExportTo out.
func mergedEndpoint(e *model.MergedEndpoint) *api.MergedEndpoint {
	return &api.MergedEndpoint{
		ServicePort: e.ServicePort, Port: e.Port, Endpoint: &endpoint(&e.Endpoint).endpoint, Source: text(e.Source),
	}
}

func mergedEndpointOf(m *api.MergedEndpoint) model.MergedEndpoint {
	return model.MergedEndpoint{
		ServicePort: m.GetServicePort(), Port: m.GetPort(), Endpoint: endpointOf(m.GetEndpoint()), Source: m.GetSource(),
	}
}
