package catalog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

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

// Opaques yields every carried object, ordered by kind, namespace and name.
func (s *Snapshot) Opaques() iter.Seq[*Opaque] { return values(s.opaques) }

// Opaque returns the object with that key.
func (s *Snapshot) Opaque(key OpaqueKey) (*Opaque, bool) { return s.opaques.Get(key) }

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
