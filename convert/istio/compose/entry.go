package compose

import (
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// spec returns the specification of one part of a service with so many endpoints.
func (p part) spec(s *catalog.Service, endpoints int) proto.Message {
	if p.kind == istio.WorkloadEntry {
		return p.workload()
	}
	return p.entry(s, endpoints)
}

// entry returns the specification of a ServiceEntry.
func (p part) entry(s *catalog.Service, endpoints int) *networking.ServiceEntry {
	entry := &networking.ServiceEntry{
		Hosts:           []string{s.Written()},
		Addresses:       s.Base.Own().Slice(),
		Location:        networking.ServiceEntry_Location(networking.ServiceEntry_Location_value[string(s.Location)]),
		Resolution:      networking.ServiceEntry_Resolution(networking.ServiceEntry_Resolution_value[string(resolution(s, endpoints))]),
		ExportTo:        s.ExportTo.Slice(),
		SubjectAltNames: s.SubjectAltNames.Slice(),
		Ports:           make([]*networking.ServicePort, len(p.ports)),
		Endpoints:       make([]*networking.WorkloadEntry, len(p.endpoints)),
	}
	for i, port := range p.ports {
		entry.Ports[i] = &networking.ServicePort{
			Number: port.Number, Name: port.Name, Protocol: port.Protocol, TargetPort: port.TargetPort,
		}
	}
	for i, e := range p.endpoints {
		entry.Endpoints[i] = e.entry(p.ports)
	}
	if p.selector != nil {
		entry.WorkloadSelector = &networking.WorkloadSelector{Labels: p.selector}
	}
	return entry
}

// resolution returns the service's resolution, unless no name is left to look up. Istio
// would then look up the host itself, and send traffic to whichever address answers.
func resolution(s *catalog.Service, endpoints int) model.Resolution {
	if istio.IsDNS(s.Resolution) && endpoints == 0 && len(s.Ports) > 0 {
		return model.ResolutionStatic
	}
	return s.Resolution
}

// entry returns the endpoint for a part with exactly the served ports.
func (e endpoint) entry(ports []model.Port) *networking.WorkloadEntry {
	return &networking.WorkloadEntry{
		Address:        e.Address,
		Ports:          e.ownPorts(ports),
		Labels:         e.labels(),
		Network:        e.Network,
		Locality:       localityText(e.Locality),
		Weight:         e.Weight,
		ServiceAccount: e.ServiceAccount,
	}
}

// ownPorts returns the ports of the endpoint that differ from the service's target ports,
// by the names of the service's ports.
func (e endpoint) ownPorts(ports []model.Port) map[string]uint32 {
	if names.IsUnix(e.Address) {
		return nil
	}
	var own map[string]uint32
	for i, s := range e.ports {
		usual := ports[i].Number
		if ports[i].TargetPort != 0 {
			usual = ports[i].TargetPort
		}
		if s.at == usual {
			continue
		}
		if own == nil {
			own = map[string]uint32{}
		}
		own[ports[i].Name] = s.at
	}
	return own
}

func localityText(l model.Locality) string {
	return strings.TrimRight(strings.Join([]string{l.Region, l.Zone, l.SubZone}, "/"), "/")
}

// FromScope returns the Sidecar of a scope: one listener for all of its hosts.
func FromScope(s *catalog.Scope) istio.Object {
	listener := &networking.IstioEgressListener{}
	for host := range s.Hosts() {
		listener.Hosts = append(listener.Hosts, host)
	}
	sidecar := &networking.Sidecar{Egress: []*networking.IstioEgressListener{listener}}
	if s.Selector.Len() > 0 {
		sidecar.WorkloadSelector = &networking.WorkloadSelector{Labels: s.Selector.Map()}
	}
	return istio.Object{Namespace: s.Record.Namespace, Name: s.Record.Name, Spec: sidecar}
}

// workload returns the specification of a WorkloadEntry. It contains each port, even if
// equal to the service's own number. That number may change, and both objects are valid for
// a moment.
func (p part) workload() *networking.WorkloadEntry {
	e := p.endpoints[0]
	entry := e.entry(p.ports)
	if !names.IsUnix(e.Address) {
		entry.Ports = make(map[string]uint32, len(e.ports))
		for i, s := range e.ports {
			entry.Ports[p.ports[i].Name] = s.at
		}
	}
	return entry
}
