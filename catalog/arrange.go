package catalog

import (
	"maps"
	"slices"
)

// Arrange merges in another order from now on, and returns the exact change. A source that
// was inserted, or that has no records, costs nothing. A source that moved, or has other
// rights, costs a scan of all records for its own. Only their services are merged again.
func (b *Builder) Arrange(order Order) Change {
	return b.rerank(b.order.arrange(order))
}

// rerank takes over another order. Some sources have another place or other rights in it.
func (b *Builder) rerank(next merging, moved map[string]struct{}) Change {
	if !slices.Equal(b.order.domains, next.domains) { // each host may belong to another namespace
		moved = b.sources
	}
	b.order = next
	has := func(source string) bool { _, has := b.sources[source]; return has }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(moved)), has) {
		return Change{}
	}
	step := b.step()
	step.rerank(func(source string) bool { _, is := moved[source]; return is })
	return step.finish(b.snapshot.Revision)
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
			slices.SortFunc(a.records, func(x, y *serviceRecord) int { return s.order.compareAt(key.Host, x, y) })
			a.records = slices.Compact(a.records)
		}
	}
	s.rerankScopes(moved)
	s.opaques.rerank(moved, s.order.ranks)
	s.byName.rerank(moved, s.order.ranks)
}

func (s *step) rerankService(old *serviceRecord) {
	r := *old
	r.rank = s.order.rank(r.ref.Source, r.path)
	s.records[r.ref] = &r
	s.dropSelector(old)
	s.putSelector(&r)
	for host := range r.spec.Hosts.All() {
		key := ServiceKey{r.ref.Namespace, host}
		s.detach(key, old)
		s.attach(key, &r)
	}
	s.regather(&r)
}

// regather collects the endpoints of a record's services anew: some claims have another
// rank.
func (s *step) regather(by *serviceRecord) {
	for host := range by.spec.Hosts.All() {
		t := s.touch(ServiceKey{by.ref.Namespace, host})
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

// rerank recomputes the rank of every record of some sources.
func (u *united[K, V]) rerank(moved func(source string) bool, r ranks) {
	for ref, key := range u.keys {
		if !moved(ref.Source) {
			continue
		}
		at := slices.IndexFunc(u.members[key], func(m *member) bool { return m.ref == ref })
		again := *u.members[key][at]
		again.rank = r.of(ref.Source, again.path)
		u.replace(key, ref, &again)
	}
}
