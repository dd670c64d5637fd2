package catalog

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Snapshot is every service at one revision of the store, and beside them the
// scopes, who uses which service, and what is carried and not understood. It is immutable and
// may be read from any goroutine.
type Snapshot struct {
	Revision uint64

	services immutable.Map[ServiceKey, *Service]
	scopes   immutable.Map[scopeKey, *Scope]
	primed   map[string]model.SourceMark // by source; never written once shared
	holds    map[model.Ref]*model.Record // likewise, what is held of sources
	totals   Totals

	consumptions immutable.Map[ServiceKey, *Consumption]
	opaques      immutable.Map[OpaqueKey, *Opaque]
	workloads    immutable.Map[WorkloadKey, *Workload]
}

// Totals counts what a snapshot holds.
type Totals struct {
	Services  int
	Endpoints int // distinct (service, port, address, port)
}

// Empty is the snapshot before anything is known.
func Empty() *Snapshot {
	return &Snapshot{
		services: immutable.New[ServiceKey, *Service](ServiceKey.compare),
		scopes:   immutable.New[scopeKey, *Scope](scopeKey.compare),

		consumptions: immutable.New[ServiceKey, *Consumption](ServiceKey.compare),
		opaques:      immutable.New[OpaqueKey, *Opaque](OpaqueKey.compare),
		workloads:    immutable.New[WorkloadKey, *Workload](WorkloadKey.compare),
	}
}

// Primed reports whether the snapshot holds a complete listing of the source.
func (s *Snapshot) Primed(source string) bool {
	_, ok := s.primed[source]
	return ok
}

// Mark returns the mark of a source, if the snapshot holds a complete listing of it.
func (s *Snapshot) Mark(source string) (model.SourceMark, bool) {
	mark, ok := s.primed[source]
	return mark, ok
}

// Holds returns what is held of some sources. A hold changes no service, so it is
// no part of one and joined to it by whoever shows it.
func (s *Snapshot) Holds(sources ...string) (holds model.Holds) {
	for ref, rec := range s.holds {
		if slices.Contains(sources, ref.Source) {
			holds.Add(*rec)
		}
	}
	return holds
}

// Totals counts services and endpoints.
func (s *Snapshot) Totals() Totals { return s.totals }

// Service returns the service with that key.
func (s *Snapshot) Service(key ServiceKey) (*Service, bool) { return s.services.Get(key) }

// Services yields every service, ordered by host and namespace.
func (s *Snapshot) Services() iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		for _, service := range s.services.All() {
			if !yield(service) {
				return
			}
		}
	}
}

// ByHost yields the services of a host, one per namespace.
func (s *Snapshot) ByHost(host string) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		for key, service := range s.services.From(ServiceKey{Host: host}) {
			if key.Host != host || !yield(service) {
				return
			}
		}
	}
}

// Viewer is who looks at the catalog: a workload of a namespace, which may be
// empty, and the scope that narrows what it sees, if any.
type Viewer struct {
	Namespace string
	Scope     *Scope
}

// sees reports whether a service is exported to the viewer and in its scope.
func (v Viewer) sees(s *Service) bool {
	return s.VisibleTo(v.Namespace, s.Key.Namespace) && v.Scope.includes(v.Namespace, s.Key)
}

// Resolve returns the service that a host names for a viewer: the one of its
// own namespace if it sees that, else the first one it sees in source order,
// then by namespace.
func (s *Snapshot) Resolve(v Viewer, host string) (*Service, bool) {
	var best *Service
	for service := range s.ByHost(host) {
		best = v.preferred(best, service)
	}
	return best, best != nil
}

// Visible yields the service that each host names for a viewer, in the order
// of hosts.
func (s *Snapshot) Visible(v Viewer) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		var best *Service
		host := ""
		for key, service := range s.services.All() {
			if key.Host != host {
				if best != nil && !yield(best) {
					return
				}
				best, host = nil, key.Host
			}
			best = v.preferred(best, service)
		}
		if best != nil {
			yield(best)
		}
	}
}

// preferred returns which of two services of one host a viewer sees: best, or
// nil if it sees none so far, and candidate, which comes later by namespace.
func (v Viewer) preferred(best, candidate *Service) *Service {
	switch {
	case !v.sees(candidate):
		return best
	case best == nil, candidate.Key.Namespace == v.Namespace:
		return candidate
	case best.Key.Namespace == v.Namespace, best.compareSources(candidate.Definition) <= 0:
		return best
	default:
		return candidate
	}
}
