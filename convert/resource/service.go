package resource

import (
	"fmt"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

func service(s *model.Service) *api.Service {
	return &api.Service{
		Meta: meta(&s.Meta), Hosts: texts(s.Hosts), Addresses: texts(s.Addresses), Cluster: text(s.Cluster),
		Ports: list(s.Ports, port), Location: text(s.Location), Resolution: text(s.Resolution),
		ExportTo: texts(s.ExportTo), SubjectAltNames: texts(s.SubjectAltNames),
		WorkloadSelector: labels(s.WorkloadSelector), Traffic: traffic(s.Traffic),
	}
}

func serviceOf(r *reader, field string, m *api.Service) model.Service {
	return model.Service{
		Meta: r.meta(field+".meta", m.GetMeta()), Hosts: model.ListOf(m.GetHosts()...),
		Addresses: model.ListOf(m.GetAddresses()...), Cluster: m.GetCluster(), Ports: portsOf(r, field, m.GetPorts()),
		Location: model.Location(m.GetLocation()), Resolution: model.Resolution(m.GetResolution()),
		ExportTo: model.ListOf(m.GetExportTo()...), SubjectAltNames: model.ListOf(m.GetSubjectAltNames()...),
		WorkloadSelector: model.MapOf(m.GetWorkloadSelector()), Traffic: trafficOf(m.GetTraffic()),
	}
}

func port(p model.Port) *api.Port {
	return &api.Port{
		Number: p.Number, Name: text(p.Name), Protocol: text(p.Protocol),
		TargetPort: p.TargetPort, TargetName: text(p.TargetName), Path: names(p.Path),
	}
}

func portsOf(r *reader, field string, messages []*api.Port) model.List[model.Port] {
	ports := make([]model.Port, len(messages))
	for i, m := range messages {
		ports[i] = model.Port{
			Number: m.GetNumber(), Name: m.GetName(), Protocol: m.GetProtocol(),
			TargetPort: m.GetTargetPort(), TargetName: m.GetTargetName(),
		}
		if len(m.GetPath()) > 0 {
			ports[i].Path = r.path(fmt.Sprintf("%s.ports[%d].path", field, i), m.GetPath())
		}
	}
	return model.ListOf(ports...)
}

// traffic returns nil for no settings.
func traffic(t model.Traffic) *api.Traffic {
	if t == (model.Traffic{}) {
		return nil
	}
	return &api.Traffic{
		NodeLocal: t.NodeLocal, Prefer: text(t.Prefer), Affinity: text(t.Affinity),
		Headless: t.Headless, ClusterLocal: t.ClusterLocal,
	}
}

func trafficOf(m *api.Traffic) model.Traffic {
	return model.Traffic{
		NodeLocal: m.GetNodeLocal(), Prefer: model.Preference(m.GetPrefer()), Affinity: model.Affinity(m.GetAffinity()),
		Headless: m.GetHeadless(), ClusterLocal: m.GetClusterLocal(),
	}
}

func mergedService(s *model.MergedService) *api.MergedService {
	return &api.MergedService{Service: service(&s.Service), Sources: texts(s.Sources)}
}

func mergedServiceOf(r *reader, m *api.MergedService) model.MergedService {
	return model.MergedService{
		Service: serviceOf(r, "merged_service.service", m.GetService()), Sources: model.ListOf(m.GetSources()...),
	}
}
