package smi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/internal/spelling"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// The API group and the kind of the objects.
const (
	Group = "split.smi-spec.io"
	Kind  = "TrafficSplit"
)

const (
	newest     = "v1alpha4"
	wholes     = "v1alpha2" // without matches, as the one before
	quantities = "v1alpha1" // with quantities as weights; all later versions have whole numbers
)

// Versions returns the versions of the group, the newest first.
func Versions() []string { return []string{newest, "v1alpha3", wholes, quantities} }

// Object is the known part of an object beside its specification.
type Object struct {
	Version   string // of the group, such as v1alpha4
	Namespace string
	Domain    string // of the cluster's DNS, for short names of Services
	// Served means that an API server passed on the object. An API server without a webhook
	// serves an object in any version, with the fields in which it was written.
	Served bool
}

// Read makes a split of a specification, without metadata. The problems are in no order, and
// have no lines. A split with rules that are not kept has no effect and no backends.
func Read(spec *yamlpos.Node, of Object) (model.Split, []yamlpos.Problem) {
	r := &reader{of: of}
	var s model.Split
	if !r.isMap(spec, "spec") {
		return s, r.found
	}
	r.checkFields(spec, r.fields(), []string{"service", "backends"}, "spec")
	s.Host = r.host(spec.Get("service"), "spec", "service")
	s.Backends = r.backends(spec.Get("backends"), s.Host)
	if r.hasMatches(spec.Get("matches")) {
		s.Backends, s.NoEffect = nil, "HTTPRouteGroups are not read, so the object divides no calls: all stay with "+s.Host+
			"; remove matches to divide all of them"
	}
	return s, r.found
}

// reader collects the problems of one object.
type reader struct {
	of    Object
	found []yamlpos.Problem
}

func (r *reader) add(at []any, format string, args ...any) {
	r.found = append(r.found, yamlpos.Problem{Field: yamlpos.Path(at...), Reason: fmt.Sprintf(format, args...)})
}

// mayMatch reports whether the object may have matches.
func (r *reader) mayMatch() bool {
	return r.of.Served || r.of.Version != quantities && r.of.Version != wholes
}

func (r *reader) fields() []string {
	if r.mayMatch() {
		return []string{"service", "backends", "matches"}
	}
	return []string{"service", "backends"}
}

// isMap reports whether a field is a map.
func (r *reader) isMap(n *yamlpos.Node, at ...any) bool {
	switch n.Kind() {
	case yamlpos.Map:
		return true
	case yamlpos.Null:
		r.add(at, "missing: write it")
	default:
		r.add(at, "must be a map, is %s", n.Kind())
	}
	return false
}

// remedies are examples to write in place of a missing field.
var remedies = map[string]string{
	"service":  "name a service, such as reviews",
	"backends": "write at least one, such as {service: reviews-v2, weight: 1}",
	"weight":   "write 0 or more",
	"kind":     "write HTTPRouteGroup",
	"name":     "name the HTTPRouteGroup",
}

// checkFields checks the names of a map's fields. Beside an unknown field none is missing: it
// was most likely misspelled.
func (r *reader) checkFields(n *yamlpos.Node, known, needed []string, at ...any) {
	before := len(r.found)
	for key := range n.Fields() {
		if slices.Contains(known, key.Name) {
			continue
		}
		here := append(slices.Clone(at), key.Name)
		if key.Name == "matches" && len(at) == 1 {
			r.add(here, "%s has no matches: use %s/%s", r.of.Version, Group, newest)
		} else if near := spelling.Nearest(key.Name, known); near != "" {
			r.add(here, "unknown field: did you mean %s?", near)
		} else {
			r.add(here, "unknown field: remove it, or use one of %s", strings.Join(known, ", "))
		}
	}
	if len(r.found) > before {
		return
	}
	for _, name := range needed {
		if n.Get(name).Kind() == yamlpos.Null {
			r.add(append(slices.Clone(at), name), "missing: %s", remedies[name])
		}
	}
}

// backends reads the backends of the service with a host.
func (r *reader) backends(list *yamlpos.Node, root string) []model.Backend {
	at := []any{"spec", "backends"}
	switch {
	case list.Kind() == yamlpos.Null:
		return nil
	case list.Kind() == yamlpos.List && list.Len() == 0:
		r.add(at, "missing: %s", remedies["backends"])
		return nil
	case list.Kind() != yamlpos.List:
		r.add(at, "must be a list, is %s: begin each entry with a hyphen", list.Kind())
		return nil
	case list.Len() > split.MostBackends:
		r.add(at, "%d entries, and at most %d are allowed: remove some", list.Len(), split.MostBackends)
		return nil
	}
	before := len(r.found)
	hosts, weights := make([]string, list.Len()), make([]uint32, list.Len())
	for i, item := range list.Items() {
		here := []any{"spec", "backends", i}
		if !r.isMap(item, here...) {
			continue
		}
		r.checkFields(item, []string{"service", "weight"}, []string{"service", "weight"}, here...)
		hosts[i] = r.host(item.Get("service"), "spec", "backends", i, "service")
		if first := slices.Index(hosts, hosts[i]); first < i && hosts[i] != "" {
			r.add([]any{"spec", "backends", i, "service"}, "%q is the service of backends[%d] already: add the weight there", hosts[i], first)
		}
		weights[i] = r.weight(item.Get("weight"), "spec", "backends", i, "weight")
	}
	if len(r.found) > before {
		return nil
	}
	if slices.Max(weights) == 0 {
		r.add(at, "only weights of 0: give at least one backend a weight")
	}
	return r.backendsOf(root, hosts, inUnits(weights))
}

// backendsOf returns backends with these hosts and weights.
func (r *reader) backendsOf(root string, hosts []string, weights []uint32) []model.Backend {
	list := make([]model.Backend, len(hosts))
	for i, host := range hosts {
		list[i].Weight = weights[i]
		if host != root {
			list[i].Service = model.ServiceName{Namespace: r.of.Namespace, Host: host}
		}
	}
	return list
}

// hasMatches reports whether there are rules for which calls are divided.
func (r *reader) hasMatches(list *yamlpos.Node) bool {
	at := []any{"spec", "matches"}
	if list.Kind() == yamlpos.Null || !r.mayMatch() {
		return false
	}
	if list.Kind() != yamlpos.List {
		r.add(at, "must be a list, is %s: begin each entry with a hyphen", list.Kind())
	}
	for i, item := range list.Items() {
		here := []any{"spec", "matches", i}
		if !r.isMap(item, here...) {
			continue
		}
		r.checkFields(item, []string{"apiGroup", "kind", "name"}, []string{"kind", "name"}, here...)
		if kind := item.Get("kind"); kind.Kind() != yamlpos.Null && kind.Text() != "HTTPRouteGroup" {
			r.add([]any{"spec", "matches", i, "kind"}, "must be HTTPRouteGroup")
		}
		if name := item.Get("name"); name.Kind() != yamlpos.Null && (name.Kind() != yamlpos.String || name.Text() == "") {
			r.add([]any{"spec", "matches", i, "name"}, "must be a string that is not empty: %s", remedies["name"])
		}
	}
	return list.Len() > 0
}
