package resource

import (
	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

func split(s *model.Split) *api.Split {
	m := &api.Split{Meta: meta(&s.Meta), Host: text(s.Host), NearFirst: s.NearFirst, NoEffect: text(s.NoEffect)}
	for _, b := range s.Backends {
		backend := &api.Backend{Source: text(b.Source), Labels: labels(b.Labels), Weight: b.Weight}
		if b.Service != (model.ServiceName{}) {
			backend.Service = serviceName(b.Service)
		}
		m.Backends = append(m.Backends, backend)
	}
	return m
}

func splitOf(r *reader, m *api.Split) model.Split {
	s := model.Split{
		Meta: r.meta("split.meta", m.GetMeta()), Host: m.GetHost(), NearFirst: m.GetNearFirst(), NoEffect: m.GetNoEffect(),
	}
	for _, b := range m.GetBackends() {
		s.Backends = append(s.Backends, model.Backend{
			Service: serviceNameOf(b.GetService()), Source: b.GetSource(), Labels: model.MapOf(b.GetLabels()), Weight: b.GetWeight(),
		})
	}
	return s
}

func scope(s *model.Scope) *api.Scope {
	return &api.Scope{
		Meta: meta(&s.Meta), WorkloadSelector: labels(s.WorkloadSelector), Hosts: texts(s.Hosts), Content: text(s.Content),
	}
}

func scopeOf(r *reader, m *api.Scope) model.Scope {
	return model.Scope{
		Meta: r.meta("scope.meta", m.GetMeta()), WorkloadSelector: model.MapOf(m.GetWorkloadSelector()),
		Hosts: model.ListOf(m.GetHosts()...), Content: m.GetContent(),
	}
}

func consumption(c *model.Consumption) *api.Consumption {
	return &api.Consumption{Consumer: serviceName(c.Consumer), Providers: list(c.Providers, serviceName)}
}

func consumptionOf(m *api.Consumption) model.Consumption {
	providers := make([]model.ServiceName, len(m.GetProviders()))
	for i, p := range m.GetProviders() {
		providers[i] = serviceNameOf(p)
	}
	return model.Consumption{Consumer: serviceNameOf(m.GetConsumer()), Providers: model.ListOf(providers...)}
}

func serviceName(n model.ServiceName) *api.ServiceName {
	return &api.ServiceName{Namespace: text(n.Namespace), Host: text(n.Host)}
}

func serviceNameOf(m *api.ServiceName) model.ServiceName {
	return model.ServiceName{Namespace: m.GetNamespace(), Host: m.GetHost()}
}
