// Package index summarizes the stored records of one source: its objects by place, the
// endpoints of each service, and the size of each namespace. An [Index] is derived from
// the records alone, so it can be rebuilt at any time. The package does no I/O. An index
// belongs to one goroutine at a time.
package index

import (
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Index summarizes the stored records of a source. It has the objects of each place, so
// that a reading of one place costs nothing for the others. It counts records by kind
// and by object.
type Index struct {
	stands map[model.Ref]Standing // of every object; owned records have none
	at     map[string]map[model.Ref]struct{}
	inAll  map[string]Footprint // of each namespace: the sum of its services
	counts map[model.Kind]int
	total  int                // without Hold records, which are derived themselves
	owned  map[model.Ref]*int // Records of each object that owns any
	last   struct {           // the object that was counted last
		object model.Ref
		owned  *int
	}
	selections *selections
}

// Standing is the place of an object, and its footprint.
type Standing struct {
	Place string
	Footprint
}

// New returns the index of no records.
func New() *Index {
	return &Index{
		stands: map[model.Ref]Standing{},
		at:     map[string]map[model.Ref]struct{}{},
		inAll:  map[string]Footprint{},
		counts: map[model.Kind]int{},
		owned:  map[model.Ref]*int{}, selections: newSelections(),
	}
}

// Following yields the records of stored and indexes them as they pass. So a full
// listing needs one pass for its difference and its index.
func (x *Index) Following(stored iter.Seq[model.Record]) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		for rec := range stored {
			x.created(rec)
			if !yield(rec) {
				return
			}
		}
	}
}

// Commit applies committed writes.
func (x *Index) Commit(writes []model.Write) {
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

func (x *Index) created(rec model.Record) {
	if rec.Kind == model.KindHold {
		return
	}
	x.counts[rec.Kind]++
	x.total++
	x.own(rec.Owner, +1)
	x.set(rec)
}

func (x *Index) deleted(rec model.Record) {
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
func (x *Index) own(object model.Ref, by int) {
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

// Owns counts the records of an object, without the object itself.
func (x *Index) Owns(object model.Ref) int {
	if n := x.owned[object]; n != nil {
		return *n
	}
	return 0
}

// set sets the place of an object, whatever its place was before.
func (x *Index) set(rec model.Record) {
	if rec.Kind.Reserved() {
		return
	}
	x.selections.set(rec)
	now := Standing{rec.Place, FootprintOf(rec.Spec)}
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
	x.weigh(rec.Namespace, now.Footprint)
	refs := x.at[rec.Place]
	if refs == nil {
		refs = map[model.Ref]struct{}{}
		x.at[rec.Place] = refs
	}
	refs[rec.Ref] = struct{}{}
}

func (x *Index) unset(ref model.Ref) {
	was, ok := x.stands[ref]
	if !ok {
		return
	}
	delete(x.stands, ref)
	x.weigh(ref.Namespace, Footprint{}.Minus(was.Footprint))
	delete(x.at[was.Place], ref)
	if len(x.at[was.Place]) == 0 {
		delete(x.at, was.Place)
	}
}

// weigh adds to the footprint of a namespace.
func (x *Index) weigh(namespace string, f Footprint) {
	if f == (Footprint{}) {
		return
	}
	if sum := x.inAll[namespace].Plus(f); sum == (Footprint{}) {
		delete(x.inAll, namespace)
	} else {
		x.inAll[namespace] = sum
	}
}

// Kinds returns the kinds with stored records, sorted.
func (x *Index) Kinds() []model.Kind {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(x.counts)), func(k model.Kind) bool { return x.counts[k] == 0 })
}

// Records counts the stored records that the registry lists.
func (x *Index) Records() int { return x.total - x.counts[model.KindSource] }

// Services counts the stored services.
func (x *Index) Services() int { return x.counts[model.KindService] }

// Endpoints counts the stored endpoints and workloads.
func (x *Index) Endpoints() int { return x.counts[model.KindEndpoint] + x.counts[model.KindWorkload] }

// Carried counts the stored records of kinds that are not understood, by kind; nil if there
// are none.
func (x *Index) Carried() (counts map[model.Kind]int) {
	for kind, n := range x.counts {
		if n == 0 || kind.Understood() {
			continue
		}
		if counts == nil {
			counts = map[model.Kind]int{}
		}
		counts[kind] = n
	}
	return counts
}

// Marked reports whether the source is known to have listed completely.
func (x *Index) Marked() bool { return x.counts[model.KindSource] > 0 }

// Total counts the stored records, without Hold records.
func (x *Index) Total() int { return x.total }

// Find returns the standing of an object, and whether it is stored.
func (x *Index) Find(object model.Ref) (Standing, bool) {
	s, stored := x.stands[object]
	return s, stored
}

// Objects yields every stored object with its standing.
func (x *Index) Objects() iter.Seq2[model.Ref, Standing] { return maps.All(x.stands) }

// ObjectsAt yields the stored objects of a place.
func (x *Index) ObjectsAt(place string) iter.Seq[model.Ref] { return maps.Keys(x.at[place]) }

// Namespace returns the sum of the footprints of a namespace.
func (x *Index) Namespace(name string) Footprint { return x.inAll[name] }

// ServicesOf returns the services that an endpoint counts for: its owner, or the
// services that select it. An endpoint that stands alone is a service of its own.
func (x *Index) ServicesOf(rec model.Record) []model.Ref {
	switch rec.Kind {
	case model.KindEndpoint:
		return []model.Ref{Head(rec)}
	case model.KindWorkload:
		if w := x.selections.workloads[rec.Ref]; w != nil {
			return w.services
		}
		spec, _ := rec.Spec.(model.Workload)
		return x.selections.of(rec.Namespace, spec.Endpoint.Labels)
	default:
		return nil
	}
}

// Selected counts the workloads that a service selects: the listed and the held ones.
func (x *Index) Selected(service model.Ref) (listed, held int) {
	return x.selections.listed[service], x.selections.held[service]
}

// Repeated counts the listed workloads that count for a further service, once for each.
func (x *Index) Repeated() int { return x.selections.repeated }

// Hold marks a record as held or not. Only workloads are counted by it.
func (x *Index) Hold(ref model.Ref, held bool) { x.selections.hold(ref, held) }

// Settle counts the workloads of services with a changed selector.
func (x *Index) Settle() { x.selections.settle() }

// Head returns the object that a record is part of: its owner, or itself.
func Head(rec model.Record) model.Ref {
	if rec.Owner != (model.Ref{}) {
		return rec.Owner
	}
	return rec.Ref
}

// Part is a record, and the object it is part of.
type Part struct{ Ref, Object model.Ref }

// PartOf returns a record as a part of its object.
func PartOf(rec model.Record) Part { return Part{rec.Ref, Head(rec)} }

// Record returns a record of that reference and owner, without contents.
func (p Part) Record() model.Record {
	rec := model.Record{Ref: p.Ref}
	if p.Ref != p.Object {
		rec.Owner = p.Object
	}
	return rec
}
