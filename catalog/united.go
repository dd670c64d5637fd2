package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/rank"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// uniting defines how records that share a key become one value. Its functions are pure, so
// the result does not depend on the order in which the records came.
type uniting[K comparable, V any] struct {
	key   func(*model.Record) (K, bool)     // false for a record that does not belong here
	unite func(key K, members []*member) *V // in merge order, never empty
	same  func(a, b *V) bool                // neither is nil
}

// member is a record as the builder holds it, beside the others of its key.
type member struct {
	ref    model.Ref
	place  string
	path   model.Path
	status model.Status
	spec   model.Spec
	rank   int
}

// compare is the merge order: by rank, then by name.
func (m *member) compare(o *member) int {
	return cmp.Or(cmp.Compare(m.rank, o.rank), cmp.Compare(m.ref.Source, o.ref.Source), m.ref.Compare(o.ref))
}

func (m *member) contributor() Contributor {
	return Contributor{Record: m.ref, Path: m.path, Place: m.place, Stale: m.status.Stale, Since: m.status.Since}
}

// united is the builder's state of records for one kind of merge.
type united[K comparable, V any] struct {
	uniting[K, V]
	keys    map[model.Ref]K // of each record
	members map[K][]*member // in merge order; a slice is never written once stored
	touched map[K]struct{}  // by the step in progress
}

func newUnited[K comparable, V any](rules uniting[K, V]) *united[K, V] {
	return &united[K, V]{rules, map[model.Ref]K{}, map[K][]*member{}, map[K]struct{}{}}
}

// put sets a record; nil removes it.
func (u *united[K, V]) put(ref model.Ref, r *model.Record, rank int) {
	if key, ok := u.keys[ref]; ok {
		delete(u.keys, ref)
		u.replace(key, ref, nil)
	}
	if r == nil {
		return
	}
	record := *r // a passed pointer would cost memory for every record of a batch, of any kind
	if key, ok := u.key(&record); ok {
		u.keys[ref] = key
		u.replace(key, ref, &member{ref, r.Place, r.Path, r.Status, r.Spec, rank})
	}
}

func (u *united[K, V]) replace(key K, ref model.Ref, m *member) {
	u.touched[key] = struct{}{}
	others := slices.DeleteFunc(slices.Clone(u.members[key]), func(o *member) bool { return o.ref == ref })
	if m != nil {
		at, _ := slices.BinarySearchFunc(others, m, (*member).compare)
		others = slices.Insert(others, at, m)
	}
	if u.members[key] = others; len(others) == 0 {
		delete(u.members, key)
	}
}

// touch merges the records of a key anew, if there are any.
func (u *united[K, V]) touch(key K) {
	if len(u.members[key]) > 0 {
		u.touched[key] = struct{}{}
	}
}

// finish ends a step: it returns the values after it, and the changes. Equal values keep
// their pointers.
func (u *united[K, V]) finish(before immutable.Map[K, *V]) (immutable.Map[K, *V], map[K]Replaced[V]) {
	if len(u.touched) == 0 {
		return before, nil
	}
	edit, changed := before.Edit(), map[K]Replaced[V]{}
	for key := range u.touched {
		old, _ := before.Get(key)
		var now *V
		if members := u.members[key]; len(members) > 0 {
			now = u.unite(key, members)
		}
		if u.isSame(old, now) {
			continue
		}
		changed[key] = Replaced[V]{old, now}
		if now == nil {
			edit.Delete(key)
		} else {
			edit.Set(key, now)
		}
	}
	u.touched = map[K]struct{}{} // clearing a map that a listing made large would cost as much each time
	if len(changed) == 0 {
		return before, nil
	}
	return edit.Map(), changed
}

func (u *united[K, V]) isSame(a, b *V) bool {
	return a == b || a != nil && b != nil && u.same(a, b)
}

// rejoin returns the values of now, with the pointers of old where they are equal, and the
// changes from old.
func (u *united[K, V]) rejoin(old, now immutable.Map[K, *V]) (immutable.Map[K, *V], map[K]Replaced[V]) {
	edit, changed := now.Edit(), map[K]Replaced[V]{}
	for key, was := range old.All() {
		if _, ok := now.Get(key); !ok {
			changed[key] = Replaced[V]{was, nil}
		}
	}
	for key, is := range now.All() {
		if was, _ := old.Get(key); u.isSame(was, is) {
			edit.Set(key, was)
		} else {
			changed[key] = Replaced[V]{was, is}
		}
	}
	return edit.Map(), changed
}

// alone lists records of which only the first counts; the others get a reason.
func alone(members []*member) []Contributor {
	list := make([]Contributor, len(members))
	for i, m := range members {
		list[i] = m.contributor()
		if i > 0 {
			list[i].LeftOut = fmt.Sprintf("%s comes first in the order of sources", members[0].ref)
		}
	}
	return list
}

// WorkloadKey is the identity of a workload.
type WorkloadKey struct{ Namespace, Name string }

func (k WorkloadKey) compare(o WorkloadKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

func (k WorkloadKey) String() string { return k.Namespace + "/" + k.Name }

// Workload is an instance that services may select, from the first source in the configured
// order. It is immutable. Services select the workloads of all sources, each by itself.
type Workload struct {
	Key WorkloadKey
	model.Workload
	// Records are the records of the name, in merge order. This value is the first one's.
	Records []Contributor
}

func newWorkloads() *united[WorkloadKey, Workload] {
	return newUnited(uniting[WorkloadKey, Workload]{
		key: func(r *model.Record) (WorkloadKey, bool) {
			_, ok := specOf[model.Workload](r)
			return WorkloadKey{r.Namespace, r.Name}, ok
		},
		unite: func(key WorkloadKey, members []*member) *Workload {
			first, _ := members[0].spec.(model.Workload) // its key proves the type
			return &Workload{key, first, alone(members)}
		},
		same: func(a, b *Workload) bool {
			return a.EqualSpec(b.Workload) && slices.EqualFunc(a.Records, b.Records, Contributor.equal)
		},
	})
}

// OpaqueKey is the identity of a carried object that is not understood.
type OpaqueKey struct {
	Kind            model.Kind
	Namespace, Name string
}

func (k OpaqueKey) compare(o OpaqueKey) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

func (k OpaqueKey) String() string { return string(k.Kind) + " " + k.Namespace + "/" + k.Name }

// Opaque is a carried object that is not understood, from the first source in the
// configured order. It is immutable.
type Opaque struct {
	Key OpaqueKey
	model.Opaque
	// Records are the records of the object, in merge order. Only the first one is carried.
	Records []Contributor
}

// newOpaques lets the first source of an object win, because content that is not understood
// cannot be merged.
func newOpaques() *united[OpaqueKey, Opaque] {
	return newUnited(uniting[OpaqueKey, Opaque]{
		key: func(r *model.Record) (OpaqueKey, bool) {
			_, ok := specOf[model.Opaque](r)
			return OpaqueKey{r.Kind, r.Namespace, r.Name}, ok
		},
		unite: func(key OpaqueKey, members []*member) *Opaque {
			first, _ := members[0].spec.(model.Opaque) // its key proves the type
			return &Opaque{key, first, alone(members)}
		},
		same: func(a, b *Opaque) bool {
			return a.EqualSpec(b.Opaque) && slices.EqualFunc(a.Records, b.Records, Contributor.equal)
		},
	})
}

// values yields the values of a map in the order of its keys.
func values[K, V any](m immutable.Map[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range m.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// rerank recomputes the rank of every record of some sources.
func (u *united[K, V]) rerank(moved func(source string) bool, r rank.Places) {
	for ref, key := range u.keys {
		if !moved(ref.Source) {
			continue
		}
		at := slices.IndexFunc(u.members[key], func(m *member) bool { return m.ref == ref })
		again := *u.members[key][at]
		again.rank = r.Of(ref.Source, again.path)
		u.replace(key, ref, &again)
	}
}
