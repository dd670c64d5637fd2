package client

import (
	"cmp"
	"iter"

	"google.golang.org/protobuf/proto"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/immutable"
)

// View is the selected records at one revision. It never changes.
type View struct {
	records records
	at      *resourcev1alpha1.Moment
}

// records are records by name, in the order of kind, source, namespace and name.
type records = immutable.Map[key, *resourcev1alpha1.Record]

// key is a [resourcev1alpha1.Ref] that can be compared.
type key struct{ kind, source, namespace, name string }

func keyOf(r *resourcev1alpha1.Ref) key {
	return key{r.GetKind(), r.GetSource(), r.GetNamespace(), r.GetName()}
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), cmp.Compare(k.source, o.source),
		cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// At returns the moment of the view; nil if the client must not see revisions.
func (v *View) At() *resourcev1alpha1.Moment { return v.at }

// Len returns the number of records.
func (v *View) Len() int { return v.records.Len() }

// Get returns the record of a name, and whether there is one.
func (v *View) Get(ref *resourcev1alpha1.Ref) (*resourcev1alpha1.Record, bool) {
	return v.records.Get(keyOf(ref))
}

// All yields the records in the order of kind, source, namespace and name.
func (v *View) All() iter.Seq[*resourcev1alpha1.Record] {
	return func(yield func(*resourcev1alpha1.Record) bool) {
		for _, record := range v.records.All() {
			if !yield(record) {
				return
			}
		}
	}
}

// Change is the difference of one record between two views. Before is nil for a record that
// is new, and After for one that is gone.
type Change struct{ Before, After *resourcev1alpha1.Record }

// Since yields the changes from an older view to v, in the order of the records. Since nil,
// every record is new. It looks at every record of both views.
func (v *View) Since(older *View) iter.Seq[Change] {
	before := noRecords()
	if older != nil {
		before = older.records
	}
	return func(yield func(Change) bool) {
		for c := range paired(before, v.records) {
			if c.Before != c.After && !proto.Equal(c.Before, c.After) && !yield(c) {
				return
			}
		}
	}
}

// paired yields the records of two maps in order, those of one name together.
func paired(before, after records) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		nextOld, stopOld := iter.Pull2(before.All())
		defer stopOld()
		nextNew, stopNew := iter.Pull2(after.All())
		defer stopNew()
		was, old, hasOld := nextOld()
		is, fresh, hasNew := nextNew()
		for hasOld || hasNew {
			var c Change
			if hasOld && (!hasNew || was.compare(is) <= 0) {
				c.Before = old
			}
			if hasNew && (!hasOld || is.compare(was) <= 0) {
				c.After = fresh
			}
			if !yield(c) {
				return
			}
			if c.Before != nil {
				was, old, hasOld = nextOld()
			}
			if c.After != nil {
				is, fresh, hasNew = nextNew()
			}
		}
	}
}

func noRecords() records { return immutable.New[key, *resourcev1alpha1.Record](key.compare) }
