package catalog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

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

// Workloads yields every workload, ordered by namespace and name.
func (s *Snapshot) Workloads() iter.Seq[*Workload] { return values(s.workloads) }

// Workload returns the workload with that key.
func (s *Snapshot) Workload(key WorkloadKey) (*Workload, bool) { return s.workloads.Get(key) }

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
