package source

import (
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// scope yields the stored records that a reading can concern.
func (k *sink) scope(r *reading) iter.Seq[model.Record] {
	if r.whole {
		k.relisting()
		return k.index.following(k.all())
	}
	objects := k.concerned(r)
	within := func(rec model.Record) bool {
		_, listed := r.at[rec.Ref]
		return listed || objects[head(rec)] || r.dropped[rec.Ref] && rec.Owner != (model.Ref{})
	}
	if k.manyOf(objects) {
		return filter(k.all(), within)
	}
	return func(yield func(model.Record) bool) {
		for _, ref := range slices.SortedFunc(maps.Keys(objects), model.Ref.Compare) {
			for rec := range k.family(ref) {
				// A nested name is found under two objects; its own yields it.
				mine := head(rec) == ref || !objects[head(rec)]
				if mine && within(rec) && !yield(rec) {
					return
				}
			}
		}
		for ref := range r.single() {
			if rec, ok := k.find(ref); ok && !objects[head(rec)] && within(rec) && !yield(rec) {
				return
			}
		}
	}
}

// head returns the object a record is part of: its owner, or itself.
func head(rec model.Record) model.Ref {
	if rec.Owner != (model.Ref{}) {
		return rec.Owner
	}
	return rec.Ref
}

// concerned returns the objects that a reading names, or may end by omission.
func (k *sink) concerned(r *reading) map[model.Ref]bool {
	objects := map[model.Ref]bool{}
	for _, ref := range r.objects {
		objects[ref] = true
	}
	for ref := range r.rejected {
		objects[ref] = true
	}
	for ref := range r.deleted {
		objects[ref] = true
	}
	for place := range r.places {
		for ref := range k.index.at[place] {
			objects[ref] = true
		}
	}
	for in := range r.broken {
		for ref := range k.index.at[in.place] {
			if in.namespace == "" || in.namespace == ref.Namespace {
				objects[ref] = true
			}
		}
	}
	return objects
}

// find returns the stored record of that reference. It is the first of all records
// with a name that begins like it.
func (s *Supervisor) find(ref model.Ref) (model.Record, bool) {
	filter := model.Filter{Kind: ref.Kind, Source: ref.Source, Namespace: ref.Namespace, Prefix: ref.Name}
	for rec := range s.store.List(filter) {
		return rec, rec.Ref == ref
	}
	return model.Record{}, false
}

// family yields the stored record of that reference, and every record with its name
// as a prefix. It relies on the order of [Store.List] to stop early where the filter
// cannot: an empty namespace selects all of them.
func (s *Supervisor) family(ref model.Ref) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		filter := model.Filter{Kind: ref.Kind, Source: ref.Source, Namespace: ref.Namespace, Prefix: ref.Name}
		if rec, ok := s.find(ref); ok && !yield(rec) {
			return
		}
		filter.Prefix += "/"
		for _, filter.Kind = range s.index.kinds() {
			for rec := range s.store.List(filter) {
				if rec.Namespace != ref.Namespace {
					break
				}
				if !yield(rec) {
					return
				}
			}
		}
	}
}

// manyOf reports whether one pass over everything is cheaper than a look-up for each
// of the objects.
func (s *Supervisor) manyOf(objects map[model.Ref]bool) bool { return len(objects) > s.index.total/16 }

func filter(records iter.Seq[model.Record], within func(model.Record) bool) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		for rec := range records {
			if within(rec) && !yield(rec) {
				return
			}
		}
	}
}
