package servicecenter

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// nothing is what a scope without any host lets its workloads see.
const nothing = "~/*"

// scope is what one set of workloads may see.
type scope struct {
	key    model.Key
	labels map[string]string
	hosts  map[string]bool
}

// objects are the scopes of all consumers. Consumers of which the same workloads
// are selected share one, that of the first of them.
func (s *scoping) objects(called names, providers map[Identity]map[name]bool) []source.Object {
	if s == nil {
		return nil
	}
	scopes := map[string]*scope{} // by namespace and selector
	for _, consumer := range slices.SortedFunc(maps.Keys(providers), order{}.compare) {
		made, ok := s.scope(consumer, called.of[consumer])
		if !ok {
			continue
		}
		id := made.key.Namespace + mustJSON(made.labels)
		if scopes[id] == nil {
			scopes[id] = made
		}
		for p := range providers[consumer] {
			scopes[id].hosts[p.String()] = true
		}
	}
	objects := make([]source.Object, 0, len(scopes))
	for _, one := range scopes {
		objects = append(objects, one.object())
	}
	slices.SortFunc(objects, func(a, b source.Object) int { return a.Record.Compare(b.Record.Ref) })
	return objects
}

// scope is that of a consumer, without its providers. Templates that cannot be
// rendered for a consumer give it none, so that nothing is hidden from it.
func (s *scoping) scope(consumer Identity, called name) (*scope, bool) {
	namespace, err := render(s.namespace, consumer)
	if err != nil {
		return nil, false
	}
	one := &scope{labels: map[string]string{}, hosts: map[string]bool{}}
	one.key = model.Key{Namespace: sanitizeNamespace(namespace), Name: called.host}
	for key, t := range s.selector {
		value, err := render(t, consumer)
		if err != nil || !isLabelValue(value) || value == "" {
			return nil, false
		}
		one.labels[key] = value
	}
	for _, host := range s.hosts {
		one.hosts[host] = true
	}
	return one, true
}

func (s *scope) object() source.Object {
	hosts := slices.Sorted(maps.Keys(s.hosts))
	if len(hosts) == 0 {
		hosts = []string{nothing}
	}
	return source.Object{Record: model.Record{
		Ref:   model.Ref{Kind: model.KindScope, Key: s.key},
		Place: graphPlace,
		Spec: model.Scope{
			WorkloadSelector: model.MapOf(s.labels),
			Hosts:            model.ListOf(hosts...),
			Content: mustJSON(map[string]any{
				"workloadSelector": map[string]any{"labels": s.labels},
				"egress":           []any{map[string]any{"hosts": hosts}},
			}),
		},
	}}
}
