package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/united"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

func contributorOf(m *united.Member) Contributor {
	return Contributor{Record: m.Ref, Path: m.Path, Place: m.Place, Stale: m.Status.Stale, Since: m.Status.Since}
}

// alone lists records of which only the first counts; the others get a reason.
func alone(members []*united.Member) []Contributor {
	list := make([]Contributor, len(members))
	for i, m := range members {
		list[i] = contributorOf(m)
		if i > 0 {
			list[i].LeftOut = fmt.Sprintf("%s comes first in the order of sources", members[0].Ref)
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

func newWorkloads() *united.Records[WorkloadKey, Workload] {
	return united.New(united.Rules[WorkloadKey, Workload]{
		Key: func(r *model.Record) (WorkloadKey, bool) {
			_, ok := specOf[model.Workload](r)
			return WorkloadKey{r.Namespace, r.Name}, ok
		},
		Unite: func(key WorkloadKey, members []*united.Member) *Workload {
			first, _ := members[0].Spec.(model.Workload) // its key proves the type
			return &Workload{key, first, alone(members)}
		},
		Same: func(a, b *Workload) bool {
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
func newOpaques() *united.Records[OpaqueKey, Opaque] {
	return united.New(united.Rules[OpaqueKey, Opaque]{
		Key: func(r *model.Record) (OpaqueKey, bool) {
			_, ok := specOf[model.Opaque](r)
			return OpaqueKey{r.Kind, r.Namespace, r.Name}, ok
		},
		Unite: func(key OpaqueKey, members []*united.Member) *Opaque {
			first, _ := members[0].Spec.(model.Opaque) // its key proves the type
			return &Opaque{key, first, alone(members)}
		},
		Same: func(a, b *Opaque) bool {
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
