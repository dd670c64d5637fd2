package catalog

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// touched is the effect of one step on one service. Its definition is merged anew, its
// endpoints are collected anew as well, or some of its instances change.
type touched struct {
	define, gather bool
	swaps          []swap

	// The service before and after the step; nil if there is none.
	old, now *Service
	// changed are the endpoints that appeared, disappeared or changed, and written the joined
	// ones that may differ, by port. A port without an entry may differ anywhere.
	changed map[EndpointID]struct{}
	written map[uint32][]claim
}

// swap replaces an instance that a record brings to a service; nil is absence.
type swap struct {
	by       *serviceRecord
	old, new *Instance
}

// step is one Apply in progress.
type step struct {
	*Builder
	touched map[ServiceKey]*touched
	primed  map[string]model.SourceMark // non-nil if a mark was put
	holds   map[model.Ref]*model.Record // non-nil if one was put

	scopeEdit *immutable.Editor[scopeKey, *Scope] // non-nil if a scope changed
	rescoped  map[string]struct{}                 // namespaces with changed scopes
}

// put sets a record; nil removes it. owner is its owner, also of a removed record.
func (s *step) put(ref, owner model.Ref, r *model.Record) {
	switch ref.Kind {
	case model.KindService:
		s.putService(ref, r)
	case model.KindEndpoint:
		s.putEndpoint(ref, owner, r)
	case model.KindWorkload:
		s.putWorkload(ref, r)
		s.byName.Put(ref, r, s.order.rankOf(ref, r))
	case model.KindSource:
		s.putMark(ref, r)
	case model.KindHold:
		s.putHold(ref, r)
	case model.KindScope:
		s.putScope(ref, r)
	case model.KindSplit:
		s.splits.Put(ref, r, s.order.rankOf(ref, r))
	case model.KindConsumption: // no output reads it
	default:
		s.opaques.Put(ref, r, s.order.rankOf(ref, r))
	}
}

func (s *step) putService(ref model.Ref, r *model.Record) {
	if old := s.records[ref]; old != nil {
		delete(s.records, ref)
		s.dropSelector(old)
		for host := range old.spec.Hosts.All() {
			s.detach(KeyOf(ref.Namespace, host), old)
		}
	}
	spec, ok := specOf[model.Service](r)
	if !ok {
		return
	}
	spec.Addresses = ip.Listed(spec.Addresses)
	record := &serviceRecord{
		ref: ref, place: r.Place, path: r.Path, status: r.Status, spec: spec, rank: s.order.rank(ref.Source, r.Path), held: s.held[ref] > 0,
	}
	s.records[ref] = record
	s.putSelector(record)
	for host := range spec.Hosts.All() {
		s.attach(KeyOf(ref.Namespace, host), record)
	}
}

func (s *step) attach(key ServiceKey, r *serviceRecord) {
	a := s.services[key]
	if a == nil {
		a = &assembly{}
		s.services[key] = a
	}
	if at, found := slices.BinarySearchFunc(a.records, r, s.order.at(key)); !found { // a host may be listed twice
		a.records = slices.Insert(a.records, at, r)
	}
	s.touch(key).define = true
}

func (s *step) detach(key ServiceKey, r *serviceRecord) {
	a := s.services[key]
	a.records = slices.DeleteFunc(slices.Clone(a.records), func(o *serviceRecord) bool { return o == r })
	s.touch(key).define = true
}

// putEndpoint gives an endpoint to its owner, or with a nil record removes it.
func (s *step) putEndpoint(ref, owner model.Ref, r *model.Record) {
	old := s.owned[owner][ref.Name]
	if old == nil {
		s.disown(ref)
	}
	var instance *Instance
	if spec, ok := specOf[model.Endpoint](r); ok {
		instance = instanceOf(r, spec)
		instance.stamp(old, s.committed)
		add(s.owned, owner, ref.Name, instance)
	} else {
		drop(s.owned, owner, ref.Name)
	}
	s.exchange(owner, old, instance)
}

// exchange replaces an endpoint of a service, if the service is there; nil is absence.
func (s *step) exchange(owner model.Ref, old, instance *Instance) {
	by := s.records[owner]
	if by == nil {
		return
	}
	s.swapIn(by, old, instance)
	if first := old == nil && len(s.owned[owner]) == 1; first || len(s.owned[owner]) == 0 {
		s.redefine(by) // the host itself stops or begins to stand in for endpoints
	}
}

// disown removes an endpoint from a former owner: a record may change its owner. The name
// of a record begins with the name of its owner, so only services with such a name are
// checked.
func (s *step) disown(ref model.Ref) {
	for at := range len(ref.Name) {
		if ref.Name[at] != '/' {
			continue
		}
		former := model.Ref{Kind: model.KindService, Key: ref.Key}
		former.Name = ref.Name[:at]
		if old := s.owned[former][ref.Name]; old != nil {
			drop(s.owned, former, ref.Name)
			s.exchange(former, old, nil)
		}
	}
}

func (s *step) putWorkload(ref model.Ref, r *model.Record) {
	var instance *Instance
	old := s.workloads[ref]
	if spec, ok := specOf[model.Workload](r); ok {
		instance = instanceOf(r, spec.Endpoint)
		instance.Path = "" // the selection was made here, wherever the workload came from
		instance.stamp(old, s.committed)
		if spec.Only.Len() > 0 {
			s.confined[instance] = spec.Only
		}
	}
	s.selection.put(ref, instance)
	defer delete(s.confined, old)
	if old != nil {
		s.selecting(old, func(by *serviceRecord) { s.swapIn(by, old, nil) })
	}
	if instance != nil {
		s.selecting(instance, func(by *serviceRecord) { s.swapIn(by, nil, instance) })
	}
}

func (s *step) putMark(ref model.Ref, r *model.Record) {
	if s.primed == nil { // a step may carry the marks of several sources
		s.primed = maps.Clone(s.snapshot.primed)
	}
	if r == nil {
		delete(s.primed, ref.Source)
	} else {
		mark, _ := r.Spec.(model.SourceMark)
		s.primed[ref.Source] = mark
	}
}

// putHold stores a hold of a source. It affects merged values in one way: a listed record defines a
// service before a held one of its source.
func (s *step) putHold(ref model.Ref, r *model.Record) {
	if s.holds == nil {
		s.holds = maps.Clone(s.snapshot.holds)
	}
	s.held.count(s.holds[ref], -1, s.reorder)
	s.held.count(r, +1, s.reorder)
	if r == nil {
		delete(s.holds, ref)
	} else {
		kept := *r // not r: a kept pointer costs memory for every record of a batch
		s.holds[ref] = &kept
	}
}

// reorder gives a service record that is held from now on, or no longer, its place among the records
// of its hosts.
func (s *step) reorder(ref model.Ref) {
	r := s.records[ref]
	if r == nil {
		return
	}
	r.held = s.held[ref] > 0
	for host := range r.spec.Hosts.All() {
		key := KeyOf(ref.Namespace, host)
		if a := s.services[key]; len(a.records) > 1 {
			a.records = slices.SortedFunc(slices.Values(a.records), s.order.at(key))
			s.touch(key).define = true
		}
	}
}

func (s *step) swapIn(by *serviceRecord, old, instance *Instance) {
	for host := range by.spec.Hosts.All() {
		if was, is := s.serving(old, host), s.serving(instance, host); was != nil || is != nil {
			t := s.touch(KeyOf(by.ref.Namespace, host))
			t.swaps = append(t.swaps, swap{by, was, is})
		}
	}
}

func (s *step) redefine(by *serviceRecord) {
	if !by.spec.Resolution.LooksUp() {
		return
	}
	for host := range by.spec.Hosts.All() {
		s.touch(KeyOf(by.ref.Namespace, host)).define = true
	}
}

func (s *step) touch(key ServiceKey) *touched {
	t := s.touched[key]
	if t == nil {
		t = &touched{}
		s.touched[key] = t
	}
	return t
}

// finish builds the snapshot of a step and returns the change.
func (s *step) finish(revision uint64) Change {
	change := Change{Services: map[ServiceKey]ServiceChange{}, Scopes: s.rescoped}
	next := *s.snapshot
	next.Revision = revision
	if s.holds != nil {
		next.holds = s.holds
	}
	if s.scopeEdit != nil {
		next.scopes = s.scopeEdit.Map()
	}
	next.opaques, change.Opaques = s.opaques.Finish(next.opaques)
	next.workloads, change.Workloads = s.byName.Finish(next.workloads)
	for _, key := range s.splits.finish(next.splits) {
		s.touch(key).define = true
	}
	next.splits = s.splits.now
	s.assembleAll(revision)
	if s.primed != nil {
		change.Primed, change.Judged = compareMarks(next.primed, s.primed)
		next.primed, s.stale = s.primed, turning{s.snapshot.services, s.touched, revision, s.committed}.to(s.stale, stale.Among(s.primed))
	}
	dividing := dividing{s.snapshot.services, s.touched, s.stale}
	dividing.touchDivided(s.splits.backing, revision, s.committed)
	services := s.snapshot.services.Edit()
	for _, t := range s.touched {
		if t.now != nil {
			dividing.divide(t)
			t.now = t.now.unless(t.old)
		}
	}
	for key, t := range s.touched {
		old, now := t.old, t.now
		if now == old {
			continue
		}
		change.Services[key] = ServiceChange{old, now, t.changed}
		next.totals.count(old, -1)
		next.totals.count(now, +1)
		record(services, key, now)
	}
	next.follow(services, change.Services)
	s.snapshot = &next
	return change
}

func (t *Totals) count(s *Service, by int) {
	if s == nil {
		return
	}
	t.Services += by
	for _, e := range s.endpoints {
		t.Endpoints += by * e.Total
	}
	if s.Traffic.Near() {
		t.Near += by
	}
	if s.Traffic.ByNode() && slices.ContainsFunc(s.Ports, func(p model.Port) bool { return s.ResolutionAt(p.Number) == model.ResolutionStatic }) { // the node of a DNS name is unknown
		t.ByNode += by
	}
	if s.Traffic.ClusterLocal {
		t.ClusterLocal += by
	}
}

func record(services *immutable.Editor[ServiceKey, *Service], key ServiceKey, s *Service) {
	if s == nil {
		services.Delete(key)
		return
	}
	services.Set(key, s)
}

func specOf[S model.Spec](r *model.Record) (S, bool) {
	if r == nil {
		var none S
		return none, false
	}
	spec, ok := r.Spec.(S)
	return spec, ok
}

// putScope sets a scope; a nil record removes it.
func (s *step) putScope(ref model.Ref, r *model.Record) {
	old := s.scoped[ref]
	var scope *Scope
	if spec, ok := specOf[model.Scope](r); ok {
		scope = newScope(ref, r.Path, spec)
	}
	if old == nil && scope == nil || old.same(scope) {
		return
	}
	edit := s.editScopes()
	if old != nil {
		delete(s.scoped, ref)
		edit.Delete(s.scopeKey(old))
	}
	if scope != nil {
		s.scoped[ref] = scope
		edit.Set(s.scopeKey(scope), scope)
	}
	s.rescoped[ref.Namespace] = struct{}{}
}

func (s *step) editScopes() *immutable.Editor[scopeKey, *Scope] {
	if s.scopeEdit == nil {
		s.scopeEdit = s.snapshot.scopes.Edit()
	}
	return s.scopeEdit
}

func (b *Builder) scopeKey(s *Scope) scopeKey {
	return scopeKey{s.Record.Namespace, s.Selector.Len() == 0, b.order.rank(s.Record.Source, s.Path), s.Record}
}
