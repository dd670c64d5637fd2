package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
)

// serviceOf converts a valid ServiceEntry into a service.
func serviceOf(meta model.Meta, entry *networking.ServiceEntry) model.Service {
	return model.Service{
		Meta:             meta,
		Hosts:            model.ListOf(entry.GetHosts()...),
		Addresses:        model.ListOf(normalAddresses(entry.GetAddresses())...),
		Ports:            model.ListOf(servicePorts(entry.GetPorts())...),
		Location:         model.Location(entry.GetLocation().String()),
		Resolution:       model.Resolution(entry.GetResolution().String()),
		ExportTo:         model.ListOf(entry.GetExportTo()...),
		SubjectAltNames:  model.ListOf(entry.GetSubjectAltNames()...),
		WorkloadSelector: model.MapOf(entry.GetWorkloadSelector().GetLabels()),
		Traffic:          trafficOf(meta),
	}
}

func normalAddresses(addresses []string) []string {
	out := make([]string, len(addresses))
	for i, address := range addresses {
		out[i] = normalAddress(address)
	}
	return out
}

func servicePorts(ports []*networking.ServicePort) []model.Port {
	out := make([]model.Port, len(ports))
	for i, port := range ports {
		out[i] = model.Port{
			Number:     port.GetNumber(),
			Name:       port.GetName(),
			Protocol:   strings.ToUpper(port.GetProtocol()),
			TargetPort: port.GetTargetPort(),
		}
	}
	return out
}
