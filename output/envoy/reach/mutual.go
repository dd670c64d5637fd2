package reach

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// namespacesOf returns the namespaces of a service's endpoints: its own first, then those of the
// services that its split gives a share.
func namespacesOf(s catalog.ServiceDefinition) []string {
	list := []string{s.Key.Namespace}
	if s.Split == nil {
		return list
	}
	for _, b := range s.Split.Backends {
		if of := b.Service.Namespace; of != "" && b.Weight > 0 && !slices.Contains(list, of) {
			list = append(list, of)
		}
	}
	return list
}

// MeshOf returns the mesh for a service with endpoints in a namespace that takes mutual TLS; nil
// for any other service.
func MeshOf(m *policy.Mesh, s catalog.ServiceDefinition) *policy.Mesh {
	if m == nil || !slices.ContainsFunc(namespacesOf(s), func(namespace string) bool { return m.In(namespace) != nil }) {
		return nil
	}
	return m
}

// IsMutual reports whether Envoys call an endpoint by mutual TLS. The modes of its own namespace
// decide, also where a split gives it to a service of another one.
func IsMutual(m *policy.Mesh, e catalog.Endpoint) bool {
	return m.In(e.Record.Namespace).Reaches(e.Labels, e.Port)
}
