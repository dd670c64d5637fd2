package source

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// subject is what a refusal is about, so that a later one about the same thing
// takes its place.
type subject struct {
	ref           model.Ref
	place, object string
}

func (f Refusal) subject() subject { return subject{f.Ref, f.Place, f.Object} }

// known reports whether a reference is complete enough to name a record.
func known(ref model.Ref) bool { return ref.Kind != "" && ref.Name != "" }

func compareRefusals(a, b Refusal) int {
	return cmp.Or(
		cmp.Compare(a.Place, b.Place),
		a.Ref.Compare(b.Ref),
		cmp.Compare(a.Object, b.Object),
		cmp.Compare(a.Where, b.Where),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Reason, b.Reason),
	)
}

// refusals returns what stands refused after the reading, sorted, and those
// among it that did not stand before. It never writes to old, which others read.
func (r *reading) refusals(old []Refusal) (standing, fresh []Refusal) {
	if len(old) == 0 && len(r.refusal) == 0 {
		return nil, nil
	}
	before := make(map[Refusal]bool, len(old))
	for _, f := range old {
		before[f.withoutWhere()] = true
	}
	standing = slices.Clone(r.refusal)
	for _, f := range r.refusal {
		if !before[f.withoutWhere()] {
			fresh = append(fresh, f)
		}
	}
	anew := make(map[subject]bool, len(r.refusal))
	for _, f := range r.refusal {
		anew[f.subject()] = true
	}
	for _, f := range old {
		if !anew[f.subject()] && !r.answers(f) {
			standing = append(standing, f)
		}
	}
	slices.SortFunc(standing, compareRefusals)
	return slices.Compact(standing), fresh
}

// withoutWhere is the refusal without its line number, which moves whenever
// something above it is edited.
func (f Refusal) withoutWhere() Refusal {
	f.Where = ""
	return f
}

// answers reports whether the reading settles an earlier refusal: by having
// read all of its place again, or by speaking of the very object.
func (r *reading) answers(f Refusal) bool {
	switch {
	case r.whole:
		return true
	case r.places != nil:
		return r.places[f.Place]
	}
	ref := r.own(f.Ref)
	_, listed := r.at[ref]
	_, refused := r.refused[ref]
	return listed || refused || r.deleted[ref]
}
