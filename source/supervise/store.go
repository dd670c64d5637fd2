package supervise

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Store is the store that supervisors mirror registries to.
type Store interface {
	Committer
	Lister
	// Revision returns the revision of the last commit that List shows.
	Revision() uint64
}

// Committer takes commits.
type Committer interface {
	// Commit applies all writes of a commit or, on any error, none, and returns its revision.
	Commit(ctx context.Context, commit model.Commit) (uint64, error)
}

// Lister has records to read.
type Lister interface {
	// List yields the records a filter selects, in the order of [model.Ref.Compare]
	// and as of one revision. It shows every commit that has returned.
	List(filter model.Filter) iter.Seq[model.Record]
}

// records are the stored records of one source.
type records struct {
	store  Lister
	source string
}

func (s records) all() iter.Seq[model.Record] {
	return s.store.List(model.Filter{Source: s.source})
}

// holds yields the stored Hold records.
func (s records) holds() iter.Seq[model.Record] {
	return s.store.List(model.Filter{Kind: model.KindHold, Source: s.source})
}

// find returns the stored record of that reference. It is the first of all records
// with a name that begins like it.
func (s records) find(ref model.Ref) (model.Record, bool) {
	filter := model.Filter{Kind: ref.Kind, Source: ref.Source, Namespace: ref.Namespace, Prefix: ref.Name}
	for rec := range s.store.List(filter) {
		return rec, rec.Ref == ref
	}
	return model.Record{}, false
}

// concerned yields the records that a reading of a part of the registry can concern.
func (s records) concerned(r *reading.Reading, x *index.Index) iter.Seq[model.Record] {
	objects := r.Concerned(x)
	within := func(rec model.Record) bool {
		return r.Has(rec.Ref) || objects[index.Head(rec)] || r.Dropped[rec.Ref] && rec.Owner != (model.Ref{})
	}
	if len(objects) > x.Total()/16 { // one pass is cheaper than a look-up for each object
		return filter(s.all(), within)
	}
	return func(yield func(model.Record) bool) {
		for _, ref := range slices.SortedFunc(maps.Keys(objects), model.Ref.Compare) {
			for rec := range s.family(ref, x.Kinds()) {
				// A nested name is found under two objects; its own yields it.
				mine := index.Head(rec) == ref || !objects[index.Head(rec)]
				if mine && within(rec) && !yield(rec) {
					return
				}
			}
		}
		for ref := range r.Singles() {
			if rec, ok := s.find(ref); ok && !objects[index.Head(rec)] && within(rec) && !yield(rec) {
				return
			}
		}
	}
}

// family yields the stored record of that reference, and every record of some kinds with
// its name as a prefix. It relies on the order of [Lister.List] to stop early where the
// filter cannot: an empty namespace selects all of them.
func (s records) family(ref model.Ref, kinds []model.Kind) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		filter := model.Filter{Kind: ref.Kind, Source: ref.Source, Namespace: ref.Namespace, Prefix: ref.Name}
		if rec, ok := s.find(ref); ok && !yield(rec) {
			return
		}
		filter.Prefix += "/"
		for _, filter.Kind = range kinds {
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

func filter(records iter.Seq[model.Record], within func(model.Record) bool) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		for rec := range records {
			if within(rec) && !yield(rec) {
				return
			}
		}
	}
}

// overlay lists stored records as they are after some writes, in no order.
func overlay(stored Lister, writes []model.Write) func(model.Filter) iter.Seq[model.Record] {
	written := make(map[model.Ref]bool, len(writes))
	for _, w := range writes {
		written[w.Record.Ref] = true
	}
	return func(f model.Filter) iter.Seq[model.Record] {
		return func(yield func(model.Record) bool) {
			for rec := range stored.List(f) {
				if !written[rec.Ref] && !yield(rec) {
					return
				}
			}
			for _, w := range writes {
				if !w.Delete && f.Matches(w.Record.Ref) && !yield(w.Record) {
					return
				}
			}
		}
	}
}
