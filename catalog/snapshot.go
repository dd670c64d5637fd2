package catalog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/clusters"
	"github.com/isthmus-mesh/isthmus/catalog/crowd"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Snapshot is every service at one revision of the store, together with the scopes and the
// carried objects. It is immutable and may be read from any goroutine.
type Snapshot struct {
	Revision uint64

	services immutable.Map[ServiceKey, *Service]
	scopes   immutable.Map[scopeKey, *Scope]
	primed   map[string]model.SourceMark // by source; never written once shared
	holds    map[model.Ref]*model.Record // likewise, the holds of sources
	totals   Totals
	clusters clusters.Counts

	opaques   immutable.Map[OpaqueKey, *Opaque]
	workloads immutable.Map[WorkloadKey, *Workload]
	splits    immutable.Map[ServiceKey, *SplitRecords]
	ports     immutable.Map[uint32, *PortServices]
	crowds    crowd.Ports // of services without addresses
	served    immutable.Map[servedKey, struct{}]
}

// Totals counts the services and endpoints of a snapshot.
type Totals struct {
	Services  int
	Endpoints int // distinct (service, port, address, port)
	// Near counts services with a preference for near endpoints, and ByNode services for which
	// the node of a client matters. ClusterLocal counts services with clients that use the
	// endpoints of their own cluster alone.
	Near, ByNode, ClusterLocal int
}

// Before returns the totals before a change that led to these totals.
func (t Totals) Before(c Change) Totals {
	for _, service := range c.Services {
		t.count(service.New, -1)
		t.count(service.Old, +1)
	}
	return t
}

// Empty returns the snapshot before any record.
func Empty() *Snapshot {
	return &Snapshot{
		primed: map[string]model.SourceMark{}, holds: map[model.Ref]*model.Record{},
		services: immutable.New[ServiceKey, *Service](ServiceKey.Compare),
		scopes:   immutable.New[scopeKey, *Scope](scopeKey.compare),

		opaques:   immutable.New[OpaqueKey, *Opaque](OpaqueKey.compare),
		workloads: immutable.New[WorkloadKey, *Workload](WorkloadKey.compare),
		splits:    immutable.New[ServiceKey, *SplitRecords](ServiceKey.Compare),
		ports:     immutable.New[uint32, *PortServices](cmp.Compare[uint32]),
		served:    immutable.New[servedKey, struct{}](servedKey.compare), crowds: crowd.None(),
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

// Holds returns the holds of some sources. A hold changes no endpoint. It is therefore not
// part of a service; a reader that shows holds joins the two.
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

// follow takes over changed services, and updates all that is derived from services.
func (s *Snapshot) follow(services *immutable.Editor[ServiceKey, *Service], changed map[ServiceKey]ServiceChange) {
	if len(changed) == 0 {
		return
	}
	s.services = services.Map()
	s.clusters = countClusters(s.clusters, changed, +1)
	s.crowds = s.crowds.With(crowdsBy(changed))
	s.ports = portsAfter(s, changed)
	s.served = servedAfter(s.served, changed)
}

// Viewer is a reader of the catalog: a workload of a namespace, which may be empty, and the
// scope that narrows its view, if any.
type Viewer struct {
	Namespace string
	Scope     *Scope
}

// sees reports whether a service is exported to the viewer and in its scope.
func (v Viewer) sees(s ServiceDefinition) bool {
	return s.VisibleTo(v.Namespace, s.Key.Namespace) && v.Scope.includes(v.Namespace, s.Key)
}

// Resolve returns the service that a host names for a viewer: the owner of the name among
// the visible services. See [Asked.Owner].
func (s *Snapshot) Resolve(v Viewer, host string) (*Service, bool) {
	for best := range Choose(v, s.ByHost(host)) {
		return best, true
	}
	return nil, false
}

// Visible yields the service that each host names for a viewer, in the order
// of hosts.
func (s *Snapshot) Visible(v Viewer) iter.Seq[*Service] { return Choose(v, s.Services()) }

// Choose yields the service that each host names for a viewer. The services come by
// host, then namespace.
func Choose[S interface{ defined() ServiceDefinition }](v Viewer, services iter.Seq[S]) iter.Seq[S] {
	return func(yield func(S) bool) {
		var best S
		var chosen ServiceDefinition
		for candidate := range services {
			is := candidate.defined()
			if chosen.Definition != nil && is.Key.Host != chosen.Key.Host {
				if !yield(best) {
					return
				}
				chosen = ServiceDefinition{}
			}
			if v.prefers(is, chosen) {
				best, chosen = candidate, is
			}
		}
		if chosen.Definition != nil {
			yield(best)
		}
	}
}

// prefers reports whether a viewer sees a service rather than another one of the same host;
// best is zero if it sees none so far.
func (v Viewer) prefers(candidate, best ServiceDefinition) bool {
	return v.sees(candidate) && (best.Definition == nil || Name.Owner(v.Namespace, candidate, best) < 0)
}

// compareMarks reports whether the set of sources with a mark differs, and whether a mark has
// other judgements than before.
func compareMarks(old, now map[string]model.SourceMark) (primed, judged bool) {
	primed = len(old) != len(now)
	for source, mark := range now {
		was, ok := old[source]
		primed, judged = primed || !ok, judged || !was.Judgements.Equal(mark.Judgements)
	}
	return primed, judged
}

// AddressCluster returns the declared cluster of a client if it decides at which addresses
// the client calls services; empty otherwise. A result is one of
// [Snapshot.AddressClusters].
func (s *Snapshot) AddressCluster(said string) string {
	if s.clusters.Matters(said) {
		return said
	}
	return ""
}

// AddressClusters lists the clusters in which clients see addresses of their own; none if
// all clients see the same.
func (s *Snapshot) AddressClusters() []string { return s.clusters.List() }

// AddressClustersBefore returns [Snapshot.AddressClusters] and [Snapshot.HeadlessDiffers]
// as of the snapshot before a change.
func (s *Snapshot) AddressClustersBefore(c Change) (list []string, headlessDiffers bool) {
	was := countClusters(s.clusters, c.Services, -1)
	return was.List(), was.PartlyHeadless()
}

// HeadlessDiffers reports whether some service is headless to clients of some clusters, and
// has an address in another.
func (s *Snapshot) HeadlessDiffers() bool { return s.clusters.PartlyHeadless() }

// Workloads yields every workload, ordered by namespace and name.
func (s *Snapshot) Workloads() iter.Seq[*Workload] { return values(s.workloads) }

// Workload returns the workload with that key.
func (s *Snapshot) Workload(key WorkloadKey) (*Workload, bool) { return s.workloads.Get(key) }

// Opaques yields every carried object, ordered by kind, namespace and name.
func (s *Snapshot) Opaques() iter.Seq[*Opaque] { return values(s.opaques) }

// Opaque returns the object with that key.
func (s *Snapshot) Opaque(key OpaqueKey) (*Opaque, bool) { return s.opaques.Get(key) }

// Splits yields the records of the kind Split of each host, ordered by host and namespace.
func (s *Snapshot) Splits() iter.Seq[*SplitRecords] { return values(s.splits) }

// Divided returns a service as another split of the configuration would divide it; nil is no
// split, which leaves the service to its records. The result is nil without the service.
func (s *Snapshot) Divided(key ServiceKey, configured *split.Split) *Service {
	was, known := s.services.Get(key)
	if !known {
		return nil
	}
	definition := *was.Definition
	definition.Split = nil
	if of, some := s.splits.Get(key); some {
		definition.Split = of.split
	}
	if configured != nil {
		definition.Split = splitAt(key, *configured)
	}
	now := &Service{ServiceDefinition: ServiceDefinition{key, &definition}, Revision: was.Revision, Changed: was.Changed, joined: was.joined}
	dividing{before: s.services, stale: stale.Among(s.primed)}.divide(&touched{now: now, changed: map[EndpointID]struct{}{}})
	return now
}

// Scopes yields every scope, by namespace and in the order of precedence.
func (s *Snapshot) Scopes() iter.Seq[*Scope] {
	return func(yield func(*Scope) bool) {
		for _, scope := range s.scopes.All() {
			if !yield(scope) {
				return
			}
		}
	}
}

// ScopesOf yields the scopes of a namespace, in the order of precedence.
func (s *Snapshot) ScopesOf(namespace string) iter.Seq[*Scope] {
	return func(yield func(*Scope) bool) {
		for key, scope := range s.scopes.From(scopeKey{namespace: namespace, rank: -1}) {
			if key.namespace != namespace || !yield(scope) {
				return
			}
		}
	}
}

// ScopeOf returns the most specific scope of a workload; nil if none. The order is: of its
// namespace by label, of its namespace, of the root namespace.
func (s *Snapshot) ScopeOf(namespace string, labels model.Labels, root string) *Scope {
	if namespace != "" {
		for scope := range s.ScopesOf(namespace) {
			if labels.Includes(scope.Selector) {
				return scope
			}
		}
	}
	for key, scope := range s.scopes.From(scopeKey{namespace: root, general: true, rank: -1}) {
		if key.namespace != root || !key.general {
			break
		}
		return scope
	}
	return nil
}

// Port returns the index of a port number; nil if no service has it.
func (s *Snapshot) Port(number uint32) *PortServices {
	index, _ := s.ports.Get(number)
	return index
}

// Ports yields the index of each port number, in their order.
func (s *Snapshot) Ports() iter.Seq[*PortServices] { return values(s.ports) }
