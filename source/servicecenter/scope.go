package servicecenter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// nothing is the egress host of a scope without any host.
const nothing = "~/*"

// scope lists the hosts that one set of workloads may see.
type scope struct {
	key    model.Key
	labels map[string]string
	hosts  map[string]bool
}

// objects returns the scopes of all consumers. Consumers with the same workloads
// share the scope of the first of them. A notice names each consumer without a scope.
func (s *scoping) objects(consumers map[Identity]name, providers uses) ([]source.Object, []source.Notice) {
	scopes := map[string]*scope{} // by namespace and selector
	taken := map[model.Key]bool{}
	var without []Identity
	var notices []source.Notice
	for _, consumer := range slices.SortedFunc(maps.Keys(consumers), order{}.compare) {
		if len(providers[consumer]) == 0 {
			without = append(without, consumer)
			continue
		}
		made, err := s.scope(consumer, consumers[consumer])
		if err != nil {
			notices = append(notices, s.notice(consumer, "", err.Error()))
			continue
		}
		id := made.id()
		if scopes[id] == nil {
			made.rename(consumer, taken)
			scopes[id] = made
		}
		for p := range providers[consumer] {
			scopes[id].hosts[p.String()] = true
		}
	}
	for _, consumer := range without {
		made, err := s.scope(consumer, consumers[consumer])
		switch {
		case err != nil:
			notices = append(notices, s.notice(consumer, "", err.Error()))
		case scopes[made.id()] == nil: // else the scope of another consumer selects its workloads
			notices = append(notices, s.notice(consumer, made.where(), "the registry knows of no service that it uses"))
		}
	}
	objects := make([]source.Object, 0, len(scopes))
	for _, one := range scopes {
		objects = append(objects, one.object())
	}
	slices.SortFunc(objects, func(a, b source.Object) int { return a.Record.Compare(b.Record.Ref) })
	slices.SortFunc(notices, func(a, b source.Notice) int { return cmp.Compare(a.Object, b.Object) })
	return objects, notices
}

// notice explains the visibility of a consumer without a scope.
func (s *scoping) notice(consumer Identity, where, why string) source.Notice {
	return source.Notice{
		Object: "consumer " + consumer.place(), Where: where,
		Text: why + ", so it gets no scope: its workloads see every service that is exported to their namespace, unless a Sidecar of yours says otherwise",
	}
}

// scope returns the scope of a consumer, without its providers. If a template cannot
// be rendered for a consumer, it gets no scope, so that nothing is hidden from it.
func (s *scoping) scope(consumer Identity, called name) (*scope, error) {
	namespace, err := render(s.namespace, consumer)
	if err != nil {
		return nil, fmt.Errorf("scopes.namespace cannot be rendered: %w", err)
	}
	one := &scope{labels: map[string]string{}, hosts: map[string]bool{}}
	one.key = model.Key{Namespace: sanitizeNamespace(namespace), Name: called.host}
	for _, key := range slices.Sorted(maps.Keys(s.selector)) {
		value, err := render(s.selector[key], consumer)
		switch {
		case err != nil:
			return nil, fmt.Errorf("scopes.workloadSelector.%s cannot be rendered: %w", key, err)
		case !isLabelValue(value) || value == "":
			return nil, fmt.Errorf("scopes.workloadSelector.%s gives %q, which is no value of a label", key, value)
		}
		one.labels[key] = value
	}
	for _, host := range s.hosts {
		one.hosts[host] = true
	}
	return one, nil
}

// id identifies the workloads that a scope selects.
func (s *scope) id() string { return s.key.Namespace + mustJSON(s.labels) }

// where describes the selected workloads for people.
func (s *scope) where() string {
	labels := make([]string, 0, len(s.labels))
	for key, value := range s.labels {
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	return "namespace " + s.key.Namespace + ", labels " + strings.Join(labels, ",")
}

// rename makes the name of a scope unique. Other versions of its consumer have
// scopes, and so have consumers with the same host in another namespace.
func (s *scope) rename(consumer Identity, taken map[model.Key]bool) {
	if version := sanitizeLabel(consumer.Version); version != "" && !strings.Contains(s.key.Name, version) {
		first, domain, more := strings.Cut(s.key.Name, ".")
		versioned := sanitizeLabel(first + "-" + version)
		if more {
			versioned += "." + domain
		}
		if len(versioned) <= longestHost {
			s.key.Name = versioned
		}
	}
	if taken[s.key] {
		s.key.Name = partHost(s.key.Name, consumer.place())
	}
	taken[s.key] = true
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
