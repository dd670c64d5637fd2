package source

import (
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// index summarizes the stored records of a supervisor's source. It has the objects of
// each place, so that a reading of one place costs nothing for the others. It counts
// records by kind and by object. It is derived from the store alone and can be
// rebuilt at any time.
type index struct {
	stands map[model.Ref]standing // of every object; owned records have none
	at     map[string]map[model.Ref]struct{}
	inAll  map[string]footprint // of each namespace: the sum of its services
	counts map[model.Kind]int
	total  int                // without Hold records, which are derived themselves
	owned  map[model.Ref]*int // records of each object that owns any
	last   struct {           // the object that was counted last
		object model.Ref
		owned  *int
	}
	selections *selections
}

// standing is the place of an object, and its footprint.
type standing struct {
	place string
	footprint
}

func newIndex() *index {
	return &index{
		stands: map[model.Ref]standing{},
		at:     map[string]map[model.Ref]struct{}{},
		inAll:  map[string]footprint{},
		counts: map[model.Kind]int{},
		owned:  map[model.Ref]*int{}, selections: newSelections(),
	}
}

// following yields the records of stored and indexes them as they pass. So a full
// listing needs one pass for its difference and its index.
func (x *index) following(stored iter.Seq[model.Record]) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		for rec := range stored {
			x.created(rec)
			if !yield(rec) {
				return
			}
		}
	}
}

// commit applies committed writes.
func (x *index) commit(writes []model.Write) {
	for _, w := range writes {
		switch {
		case w.Delete:
			x.deleted(w.Record)
		case w.Record.Revision == 0:
			x.created(w.Record)
		default:
			x.set(w.Record)
		}
	}
}

func (x *index) created(rec model.Record) {
	if rec.Kind == model.KindHold {
		return
	}
	x.counts[rec.Kind]++
	x.total++
	x.own(rec.Owner, +1)
	x.set(rec)
}

func (x *index) deleted(rec model.Record) {
	if rec.Kind == model.KindHold {
		return
	}
	x.counts[rec.Kind]--
	x.total--
	x.own(rec.Owner, -1)
	x.unset(rec.Ref)
	x.selections.unset(rec.Ref)
}

// own counts a record of an object. Records of one object often follow each other.
func (x *index) own(object model.Ref, by int) {
	if object == (model.Ref{}) {
		return
	}
	if x.last.owned == nil || x.last.object != object {
		n := x.owned[object]
		if n == nil {
			n = new(int)
			x.owned[object] = n
		}
		x.last.object, x.last.owned = object, n
	}
	if *x.last.owned += by; *x.last.owned == 0 {
		delete(x.owned, object)
		x.last.owned = nil
	}
}

// owns counts the records of an object, without the object itself.
func (x *index) owns(object model.Ref) int {
	if n := x.owned[object]; n != nil {
		return *n
	}
	return 0
}

// set sets the place of an object, whatever its place was before.
func (x *index) set(rec model.Record) {
	if rec.Kind.Reserved() {
		return
	}
	x.selections.set(rec)
	now := standing{rec.Place, footprintOf(rec.Spec)}
	if was, ok := x.stands[rec.Ref]; ok {
		if was == now && rec.Owner == (model.Ref{}) {
			return
		}
		x.unset(rec.Ref)
	}
	if rec.Owner != (model.Ref{}) {
		return
	}
	x.stands[rec.Ref] = now
	x.weigh(rec.Namespace, now.footprint)
	refs := x.at[rec.Place]
	if refs == nil {
		refs = map[model.Ref]struct{}{}
		x.at[rec.Place] = refs
	}
	refs[rec.Ref] = struct{}{}
}

func (x *index) unset(ref model.Ref) {
	was, ok := x.stands[ref]
	if !ok {
		return
	}
	delete(x.stands, ref)
	x.weigh(ref.Namespace, footprint{}.minus(was.footprint))
	delete(x.at[was.place], ref)
	if len(x.at[was.place]) == 0 {
		delete(x.at, was.place)
	}
}

// weigh adds to the footprint of a namespace.
func (x *index) weigh(namespace string, f footprint) {
	if f == (footprint{}) {
		return
	}
	if sum := x.inAll[namespace].plus(f); sum == (footprint{}) {
		delete(x.inAll, namespace)
	} else {
		x.inAll[namespace] = sum
	}
}

// kinds returns the kinds with stored records, sorted.
func (x *index) kinds() []model.Kind {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(x.counts)), func(k model.Kind) bool { return x.counts[k] == 0 })
}

// records counts the stored records that the registry lists.
func (x *index) records() int { return x.total - x.counts[model.KindSource] }

func (x *index) services() int { return x.counts[model.KindService] }

func (x *index) endpoints() int { return x.counts[model.KindEndpoint] + x.counts[model.KindWorkload] }

// marked reports whether the source is known to have listed completely.
func (x *index) marked() bool { return x.counts[model.KindSource] > 0 }
