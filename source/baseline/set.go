// Package baseline judges the objects that another system has of a source, such as an API
// server that an output writes to. The first listing of a process that restored no records
// is compared with them: see [source.Baseline].
//
// The judgements follow the rules of package hold. They are stored in the mark of the
// source, as [model.Judgement]. The package has no goroutine and no clock. A [Set] belongs
// to the writer of the source's records.
package baseline

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// Set is the state of the baselines of one source, one for each other system. A set does
// not change, apart from [Set.Offer].
type Set []*state

// Offer adds a baseline to be judged, without the objects that only excludes: their
// absence is no drop.
func (s *Set) Offer(b source.Baseline, only source.Only) {
	at := slices.IndexFunc(*s, func(f *state) bool { return f.name == b.Name })
	if at < 0 {
		at = len(*s)
		*s = append(*s, newState(b.Name))
	}
	(*s)[at].pending = append((*s)[at].pending, confined(b, only))
}

// Confine drops the objects that only excludes from the baselines that are not judged yet.
func (s Set) Confine(only source.Only) {
	for _, f := range s {
		for i := range f.pending {
			f.pending[i] = confined(f.pending[i], only)
		}
	}
}

func confined(b source.Baseline, only source.Only) source.Baseline {
	b.Objects = slices.DeleteFunc(slices.Clone(b.Objects), func(o source.BaselineObject) bool {
		rec := model.Record{Ref: o.Ref(b.Source)}
		if o.Kind == model.KindService {
			rec.Spec = model.Service{Hosts: model.ListOf(o.Name)}
		}
		return only.Excludes(rec) != ""
	})
	return b
}

// Judge returns the set after a judgement for a source. List yields the records of all
// sources, and has counts the stored records of this one.
func (s Set) Judge(name string, list func(model.Filter) iter.Seq[model.Record], has index.Stock, cfg hold.Config, in Facts) Set {
	if len(s) == 0 {
		return nil
	}
	subjects := map[model.Ref]bool{}
	for _, f := range s {
		f.subjects(subjects)
	}
	var present presence
	if len(subjects) > 0 {
		present = presenceOf(list, subjects)
	}
	next := make(Set, len(s))
	for i, f := range s {
		next[i] = f.clone()
		next[i].judge(name, present, has, cfg, in)
	}
	return next
}

// Judgements returns the judgements for the source's mark.
func (s Set) Judgements() (list []model.Judgement) {
	for _, f := range s {
		if len(f.with) > 0 {
			list = append(list, f.judgement())
		}
	}
	return list
}

// Kept counts the endpoints held for baselines, and the ones with a suspected loss.
func (s Set) Kept() (endpoints, suspected int) {
	for _, f := range s {
		e, x := f.kept()
		endpoints, suspected = endpoints+e, suspected+x
	}
	return endpoints, suspected
}

// Holds reports whether anything is held.
func (s Set) Holds() bool {
	return slices.ContainsFunc(s, func(f *state) bool { return !f.holds.Empty() })
}

// Released returns the set without holds.
func (s Set) Released() Set {
	next := make(Set, len(s))
	for i, f := range s {
		next[i] = f.released()
	}
	return next
}
