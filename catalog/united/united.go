// Package united makes one value of the records that share a key.
package united

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/rank"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Replaced is the change of one value. Old is nil for a new one, and New for a removed one.
type Replaced[V any] struct{ Old, New *V }

// Rules define how records that share a key become one value. Its functions are pure, so
// the result does not depend on the order in which the records came.
type Rules[K comparable, V any] struct {
	Key   func(*model.Record) (K, bool)     // false for a record that does not belong here
	Unite func(key K, members []*Member) *V // in merge order, never empty
	Same  func(a, b *V) bool                // neither is nil
}

// Member is a record beside the others of its key.
type Member struct {
	Ref    model.Ref
	Place  string
	Path   model.Path
	Status model.Status
	Spec   model.Spec
	Rank   int
}

// compare is the merge order: by rank, then by name.
func (m *Member) compare(o *Member) int {
	return cmp.Or(cmp.Compare(m.Rank, o.Rank), cmp.Compare(m.Ref.Source, o.Ref.Source), m.Ref.Compare(o.Ref))
}

// Records are the records of one kind of merge, by key.
type Records[K comparable, V any] struct {
	Rules[K, V]
	keys    map[model.Ref]K // of each record
	members map[K][]*Member // in merge order; a slice is never written once stored
	touched map[K]struct{}  // by the step in progress
}

// New returns records of which there are none yet.
func New[K comparable, V any](rules Rules[K, V]) *Records[K, V] {
	return &Records[K, V]{rules, map[model.Ref]K{}, map[K][]*Member{}, map[K]struct{}{}}
}

// Put sets a record; nil removes it.
func (u *Records[K, V]) Put(ref model.Ref, r *model.Record, rank int) {
	if key, ok := u.keys[ref]; ok {
		delete(u.keys, ref)
		u.replace(key, ref, nil)
	}
	if r == nil {
		return
	}
	record := *r // a passed pointer would cost memory for every record of a batch, of any kind
	if key, ok := u.Key(&record); ok {
		u.keys[ref] = key
		u.replace(key, ref, &Member{ref, r.Place, r.Path, r.Status, r.Spec, rank})
	}
}

func (u *Records[K, V]) replace(key K, ref model.Ref, m *Member) {
	u.touched[key] = struct{}{}
	others := slices.DeleteFunc(slices.Clone(u.members[key]), func(o *Member) bool { return o.Ref == ref })
	if m != nil {
		at, _ := slices.BinarySearchFunc(others, m, (*Member).compare)
		others = slices.Insert(others, at, m)
	}
	if u.members[key] = others; len(others) == 0 {
		delete(u.members, key)
	}
}

// Touch merges the records of a key anew, if there are any.
func (u *Records[K, V]) Touch(key K) {
	if len(u.members[key]) > 0 {
		u.touched[key] = struct{}{}
	}
}

// Finish ends a step: it returns the values after it, and the changes. Equal values keep
// their pointers.
func (u *Records[K, V]) Finish(before immutable.Map[K, *V]) (immutable.Map[K, *V], map[K]Replaced[V]) {
	if len(u.touched) == 0 {
		return before, nil
	}
	edit, changed := before.Edit(), map[K]Replaced[V]{}
	for key := range u.touched {
		old, _ := before.Get(key)
		var now *V
		if members := u.members[key]; len(members) > 0 {
			now = u.Unite(key, members)
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

func (u *Records[K, V]) isSame(a, b *V) bool {
	return a == b || a != nil && b != nil && u.Same(a, b)
}

// Rejoin returns the values of now, with the pointers of old where they are equal, and the
// changes from old.
func (u *Records[K, V]) Rejoin(old, now immutable.Map[K, *V]) (immutable.Map[K, *V], map[K]Replaced[V]) {
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

// Rerank recomputes the rank of every record of some sources.
func (u *Records[K, V]) Rerank(moved func(source string) bool, r rank.Places) {
	for ref, key := range u.keys {
		if !moved(ref.Source) {
			continue
		}
		at := slices.IndexFunc(u.members[key], func(m *Member) bool { return m.Ref == ref })
		again := *u.members[key][at]
		again.Rank = r.Of(ref.Source, again.Path)
		u.replace(key, ref, &again)
	}
}
