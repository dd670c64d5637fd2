package catalog

import (
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog/moment"
	"github.com/isthmus-mesh/isthmus/model"
)

// assembleAll assembles the touched services.
func (s *step) assembleAll(revision uint64) {
	for key, t := range s.touched {
		t.old, _ = s.snapshot.services.Get(key)
		t.now = &Service{ServiceDefinition: ServiceDefinition{Key: key}, Revision: revision, Changed: s.committed}
		s.assemble(key, t)
		s.splits.putBackends(key, t)
	}
}

// assemble sets the definition and the joined endpoints of a touched service. The service is
// nil when no record defines it any more.
func (s *step) assemble(key ServiceKey, t *touched) {
	a, now, old := s.services[key], t.now, t.old
	if a == nil || len(a.records) == 0 {
		delete(s.services, key)
		t.dissolve()
		return
	}
	if !t.define && old != nil {
		now.Definition = old.Definition
		t.join(s.swapAll(now.Definition, old.joined, a.taken, t.swaps))
		return
	}
	layout := layoutOf(a.taken)
	definition, taken := s.order.define(key, a.records)
	s.splits.define(key, definition, s.order.splits[key])
	a.taken = taken
	now.Definition = definition
	var before map[uint32]*Endpoints
	if old != nil {
		before = old.joined
		if definition.equal(old.Definition) {
			now.Definition = old.Definition
		}
	}
	if old != nil && !t.gather && slices.EqualFunc(layout, layoutOf(taken), layoutItem.equal) && !slices.ContainsFunc(layout, layoutItem.looksUp) {
		t.join(s.swapAll(definition, before, taken, t.swaps))
		return
	}
	now.joined = s.gather(key, definition, taken)
	t.changed = reconcile(before, now.joined)
}

// join takes the joined endpoints of a change.
func (t *touched) join(changes *edit) {
	t.now.joined, t.written = changes.finish(), changes.written()
	t.changed = changes.changed(t.now.joined)
}

func sameEndpoints(a, b map[uint32]*Endpoints) bool {
	if len(a) != len(b) {
		return false
	}
	for number, e := range a {
		if b[number] != e {
			return false
		}
	}
	return true
}

// dissolve ends a service: all its endpoints are removed.
func (t *touched) dissolve() {
	t.now = nil
	if t.old != nil {
		t.changed = t.old.allEndpoints()
	}
}

// swapAll applies changes of single instances.
func (s *step) swapAll(d *Definition, before map[uint32]*Endpoints, taken []*serviceRecord, swaps []swap) *edit {
	changes := newEdit(before, s.stale, moment.Of(s.committed))
	for _, w := range swaps {
		if by := s.records[w.by.ref]; by != nil && slices.Contains(taken, by) { // it may have been replaced in the same step
			if w.new != nil && !s.brings(by, w.new) {
				w.new = nil
			}
			s.claim(changes, d, by, w.old, w.new)
		}
	}
	return changes
}

// brings reports whether a record still brings an instance to its services: a later event
// of the same step may have removed it.
func (s *step) brings(by *serviceRecord, instance *Instance) bool {
	if instance.Record.Kind == model.KindEndpoint {
		return s.owned[by.ref][instance.Record.Name] == instance
	}
	return s.workloads[instance.Record] == instance && instance.Labels.Includes(by.spec.WorkloadSelector)
}

// gather builds the endpoints of a service from all its records.
func (s *step) gather(key ServiceKey, d *Definition, taken []*serviceRecord) map[uint32]*Endpoints {
	changes := newEdit(nil, s.stale, moment.Of(s.committed))
	for _, by := range taken {
		for _, instance := range s.owned[by.ref] {
			s.claim(changes, d, by, nil, instance)
		}
		s.selected(by, func(instance *Instance) {
			if s.mayServe(instance, key.Host) {
				s.claim(changes, d, by, nil, instance)
			}
		})
		if len(s.owned[by.ref]) == 0 && standsForItself(by, key.Host) {
			s.claim(changes, d, by, nil, &Instance{Record: by.ref, Path: by.path, Endpoint: model.Endpoint{Address: by.written(key)}, changed: changes.at})
		}
	}
	return changes.finish()
}

// standsForItself reports whether the host of a record without own endpoints is itself the
// name to resolve.
func standsForItself(by *serviceRecord, host string) bool {
	return by.spec.Resolution.LooksUp() &&
		by.spec.WorkloadSelector.Len() == 0 && !strings.HasPrefix(host, "*")
}

// claim replaces a record's claims that an instance serves, one for each port of the record, by the claims of
// another instance; nil has none. A port of UDP has none where the service has TCP, nor has one where the service
// has another resolution.
func (s *step) claim(changes *edit, d *Definition, by *serviceRecord, old, instance *Instance) {
	for port := range by.spec.Ports.All() { // each number once
		if at, _ := d.Port(port.Number); at.IsUDP() != port.IsUDP() || d.ResolutionAt(port.Number) != by.spec.Resolution {
			continue
		}
		was, had := s.claimOf(old, port)
		is, has := s.claimOf(instance, port)
		if had && (!has || was.compare(is) != 0) {
			changes.set(port.Number, was, nil)
		}
		if has {
			changes.set(port.Number, is, instance)
		}
	}
}

// claimOf returns the claim that an instance serves a port, if it does.
func (s *step) claimOf(i *Instance, port model.Port) (claim, bool) {
	if i == nil {
		return claim{}, false
	}
	at, serves := portAt(port, i)
	return claim{i.place(), at, int32(s.order.rank(i.Record.Source, i.Path)), i}, serves
}

// layoutItem is the part of a record that decides which claims its instances make. While
// the layout stays the same, so do the claims of unchanged instances.
type layoutItem struct {
	ref        model.Ref
	resolution model.Resolution
	ports      model.List[model.Port]
	selector   model.Labels
}

// looksUp reports whether the host may stand for itself.
func (l layoutItem) looksUp() bool { return l.resolution.LooksUp() }

func layoutOf(taken []*serviceRecord) []layoutItem {
	items := make([]layoutItem, len(taken))
	for i, r := range taken {
		items[i] = layoutItem{r.ref, r.spec.Resolution, r.spec.Ports, r.spec.WorkloadSelector}
	}
	return items
}

func (l layoutItem) equal(o layoutItem) bool {
	return l.ref == o.ref && l.resolution == o.resolution && l.ports.Equal(o.ports) && l.selector.Equal(o.selector)
}

// rerank recomputes the rank of every record of some sources.
func (s *step) rerank(moved func(source string) bool) {
	for ref, r := range s.records {
		if moved(ref.Source) {
			s.rerankService(r)
		}
	}
	for ref, instance := range s.workloads {
		if moved(ref.Source) {
			s.selecting(instance, s.regather)
		}
	}
	for key := range s.touched { // the sort order changed while some records kept their old rank
		if a := s.services[key]; a != nil {
			slices.SortFunc(a.records, s.order.at(key))
			a.records = slices.Compact(a.records)
		}
	}
	s.rerankScopes(moved)
	s.opaques.Rerank(moved, s.order.ranks)
	s.byName.Rerank(moved, s.order.ranks)
	s.splits.Rerank(moved, s.order.ranks)
}

func (s *step) rerankService(old *serviceRecord) {
	r := *old
	r.rank = s.order.rank(r.ref.Source, r.path)
	s.records[r.ref] = &r
	s.dropSelector(old)
	s.putSelector(&r)
	for host := range r.spec.Hosts.All() {
		key := KeyOf(r.ref.Namespace, host)
		s.detach(key, old)
		s.attach(key, &r)
	}
	s.regather(&r)
}

// regather collects the endpoints of a record's services anew: some claims have another
// rank.
func (s *step) regather(by *serviceRecord) {
	for host := range by.spec.Hosts.All() {
		t := s.touch(KeyOf(by.ref.Namespace, host))
		t.define, t.gather = true, true
	}
}

func (s *step) rerankScopes(moved func(source string) bool) {
	for key, scope := range s.snapshot.scopes.All() {
		if !moved(key.record.Source) {
			continue
		}
		edit := s.editScopes()
		edit.Delete(key)
		edit.Set(s.scopeKey(scope), scope)
		s.rescoped[key.namespace] = struct{}{}
	}
}
