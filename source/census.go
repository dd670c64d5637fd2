package source

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// census is what must be known of a source, beside what is missing, to tell
// whether the drop is suspicious.
type census struct {
	total  int // endpoints stored, or kept by others
	silent int // endpoints held, here or by others, of which the reading says nothing
	// before and after count what the source had, and what it is left with if all
	// that is missing goes. What is held of which the reading says nothing is no
	// part of either.
	before, after stock
	// survives yields the listed records that are stored already.
	survives iter.Seq[model.Record]
	// stored yields the stored records of a kind. It is asked only when many
	// workloads are missing.
	stored func(model.Kind) iter.Seq[model.Record]
	// cause returns the cause for which a record is held that is not listed.
	cause func(part) (model.Ref, bool)
}

// stock is what a source has.
type stock struct {
	stored    int // records that were stored before the reading, whatever their kind
	endpoints int // these, and those that are listed for the first time
	services  int // likewise
}

// everything reports whether a drop leaves nothing of what the source had: no
// record of it; or no endpoint, not even a new one; or, of a source that had no
// endpoints, no service.
func (c census) everything() bool {
	switch {
	case c.after.stored == 0:
		return true
	case c.before.endpoints > 0:
		return c.after.endpoints == 0
	default:
		return c.before.services > 0 && c.after.services == 0 && c.after.endpoints == 0
	}
}

// census gathers what the decision needs to know of the source.
func (k *sink) census(r *reading, d difference) census {
	_, suspected := k.kept()
	silent := k.silent(r, d)
	c := census{
		total:  k.index.endpoints() + suspected,
		silent: silent.endpoints + suspected,
		before: k.stock().minus(silent),
		survives: func(yield func(model.Record) bool) {
			for i, survived := range d.Survived {
				if survived && !yield(r.records[i]) {
					return
				}
			}
		},
		stored: func(kind model.Kind) iter.Seq[model.Record] {
			return k.store.List(model.Filter{Kind: kind, Source: k.name})
		},
		cause: func(p part) (model.Ref, bool) {
			one := k.holds.of(p)
			if _, listed := r.at[p.ref]; one == nil || listed {
				return model.Ref{}, false
			}
			return one.cause, true
		},
	}
	c.after = c.before.less(r, d)
	return c
}

// silent is what is held of which the reading says nothing: it speaks of what
// it lists, rejects, misses or deletes.
func (k *sink) silent(r *reading, d difference) stock {
	s := k.holds.stock
	spoken := func(p part) {
		if k.holds.of(p) != nil {
			s.add(p.ref, -1)
		}
	}
	if k.holds.empty() {
		return s
	}
	for i := range r.records {
		spoken(partOf(r.records[i]))
	}
	for _, p := range d.Returned {
		spoken(p)
	}
	for _, rec := range d.Missing {
		spoken(partOf(rec))
	}
	for _, w := range d.Deletes {
		spoken(partOf(w.Record))
	}
	return s
}

// stock counts what is stored of the source, without its mark.
func (k *sink) stock() stock {
	return stock{k.index.records(), k.index.endpoints(), k.index.services()}
}

func (s stock) minus(o stock) stock {
	return stock{s.stored - o.stored, s.endpoints - o.endpoints, s.services - o.services}
}

// less is what is left of the stock after a reading, if all that is missing goes.
func (s stock) less(r *reading, d difference) stock {
	for _, rec := range d.Missing {
		s.add(rec.Ref, -1)
	}
	for _, w := range d.Deletes {
		s.add(w.Record.Ref, -1)
	}
	old := s.stored
	for i, survived := range d.Survived {
		if !survived {
			s.add(r.records[i].Ref, +1)
		}
	}
	s.stored = old
	return s
}

func (s *stock) add(ref model.Ref, by int) {
	s.stored += by
	s.endpoints += by * endpointsIn(ref.Kind)
	if ref.Kind == model.KindService {
		s.services += by
	}
}
