package istio

import (
	"github.com/isthmus-mesh/isthmus/catalog"
)

func scopeKey(s *catalog.Scope) Key { return Key{Sidecar, s.Record.Namespace, s.Record.Name} }

// sidecars returns the object of a scope. If several sources have one of that
// name, the first in merge order counts.
func (c Config) sidecars(instance string, s *catalog.Snapshot, key Key) Translation {
	for scope := range s.Scopes() {
		if scopeKey(scope) == key {
			return Translation{Objects: []Object{sidecarOf(instance, scope)}}
		}
	}
	return Translation{}
}

func sidecarOf(instance string, s *catalog.Scope) Object {
	hosts := []any{}
	for host := range s.Hosts() {
		hosts = append(hosts, host)
	}
	spec := map[string]any{"egress": []any{map[string]any{"hosts": hosts}}}
	if s.Selector.Len() > 0 {
		spec["workloadSelector"] = map[string]any{"labels": anyMap(s.Selector.Map())}
	}
	return Object{
		Kind: Sidecar, Namespace: s.Record.Namespace, Name: s.Record.Name,
		Labels: marks(instance), Annotations: map[string]string{annotationSources: s.Record.Source}, Spec: spec,
	}
}
