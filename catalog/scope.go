package catalog

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Scope narrows the services that workloads see. It is immutable, and replaced by another
// when its record changes. A nil scope narrows nothing.
type Scope struct {
	Record   model.Ref
	Path     model.Path
	Selector model.Labels // empty: every workload of the namespace
	// Meta and Content are other fields of its record, without effect here.
	Meta    model.Meta
	Content string

	hosts []hostPattern
}

// hostPattern is one entry of a scope, "namespace/host". Its host is kept as written, beside the
// name that hosts are compared with.
type hostPattern struct{ namespace, host, name string }

// scopeKey orders scopes by precedence within a namespace: scopes with a selector come
// first, then by source, then by name.
type scopeKey struct {
	namespace string
	general   bool
	rank      int
	record    model.Ref
}

func (k scopeKey) compare(o scopeKey) int {
	general := func(k scopeKey) int {
		if k.general {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(k.namespace, o.namespace), cmp.Compare(general(k), general(o)),
		cmp.Compare(k.rank, o.rank), cmp.Compare(k.record.Source, o.record.Source), k.record.Compare(o.record),
	)
}

func newScope(ref model.Ref, path model.Path, spec model.Scope) *Scope {
	s := &Scope{Record: ref, Path: path, Selector: spec.WorkloadSelector, Meta: spec.Meta, Content: spec.Content}
	for entry := range spec.Hosts.All() {
		namespace, host, ok := strings.Cut(entry, "/")
		if !ok { // the validation of manifests rejects this
			namespace, host = "*", entry
		}
		s.hosts = append(s.hosts, hostPattern{namespace, host, model.Name(host)})
	}
	return s
}

func (s *Scope) String() string { return s.Record.String() }

// Hosts yields the hosts that workloads may see, each as "namespace/host" in the
// form of [model.Scope].
func (s *Scope) Hosts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range s.hosts {
			if !yield(p.namespace + "/" + p.host) {
				return
			}
		}
	}
}

// same reports whether both scopes are equal.
func (s *Scope) same(o *Scope) bool {
	return s != nil && o != nil && s.Record == o.Record && s.Path == o.Path && s.Selector.Equal(o.Selector) && slices.Equal(s.hosts, o.hosts) &&
		s.Content == o.Content && s.Meta.SameMeta(o.Meta)
}

// includes reports whether a workload of a namespace may see a service.
func (s *Scope) includes(namespace string, key ServiceKey) bool {
	if s == nil {
		return true
	}
	return slices.ContainsFunc(s.hosts, func(p hostPattern) bool { return p.matches(namespace, key) })
}

func (p hostPattern) matches(own string, key ServiceKey) bool {
	switch p.namespace {
	case "*":
	case "~":
		return false
	case ".":
		if key.Namespace != own {
			return false
		}
	default:
		if key.Namespace != p.namespace {
			return false
		}
	}
	if rest, wild := strings.CutPrefix(p.name, "*"); wild {
		return strings.HasSuffix(key.Host, rest)
	}
	return key.Host == p.name
}

// rejoinScopes returns the scopes of now, with the pointers of old where they are equal,
// and the namespaces in which they differ.
func rejoinScopes(old, now immutable.Map[scopeKey, *Scope]) (immutable.Map[scopeKey, *Scope], map[string]struct{}) {
	rescoped, edit := map[string]struct{}{}, now.Edit()
	for key := range old.All() {
		if _, ok := now.Get(key); !ok {
			rescoped[key.namespace] = struct{}{}
		}
	}
	for key, scope := range now.All() {
		if was, _ := old.Get(key); was.same(scope) {
			edit.Set(key, was)
		} else {
			rescoped[key.namespace] = struct{}{}
		}
	}
	return edit.Map(), rescoped
}
