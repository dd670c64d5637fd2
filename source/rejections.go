package source

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// subject identifies the subject of a rejection, so that a later rejection of the
// same subject replaces it.
type subject struct {
	ref    model.Ref
	in     placeIn
	object string
}

func (f Rejection) subject() subject { return subject{f.Ref, placeIn{f.Place, f.Namespace}, f.Object} }

// known reports whether a reference is complete enough to name a record.
func known(ref model.Ref) bool { return ref.Kind != "" && ref.Name != "" }

func compareRejections(a, b Rejection) int {
	return cmp.Or(
		cmp.Compare(a.Place, b.Place),
		cmp.Compare(a.Namespace, b.Namespace),
		a.Ref.Compare(b.Ref),
		cmp.Compare(a.Object, b.Object),
		cmp.Compare(a.Where, b.Where),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Reason, b.Reason),
	)
}

// rejections returns the present rejections after the reading, sorted, and the new
// ones among them. It never writes to old, which others read.
func (r *reading) rejections(old []Rejection) (standing, fresh []Rejection) {
	if len(old) == 0 && len(r.rejection) == 0 {
		return nil, nil
	}
	before := make(map[Rejection]bool, len(old))
	for _, f := range old {
		before[f.withoutWhere()] = true
	}
	standing = slices.Clone(r.rejection)
	for _, f := range r.rejection {
		if !before[f.withoutWhere()] {
			fresh = append(fresh, f)
		}
	}
	anew := make(map[subject]bool, len(r.rejection))
	for _, f := range r.rejection {
		anew[f.subject()] = true
	}
	for _, f := range old {
		if !anew[f.subject()] && !r.answers(f) {
			standing = append(standing, f)
		}
	}
	slices.SortFunc(standing, compareRejections)
	return slices.Compact(standing), fresh
}

// unread reports whether a part of a registry is unknown, since it was rejected.
// Parts that the source's confinement excludes do not count.
func unread(rejected []Rejection) bool {
	return slices.ContainsFunc(rejected, func(f Rejection) bool { return !f.Outside })
}

// withoutWhere returns the rejection without its line number, which moves whenever
// text above it is edited.
func (f Rejection) withoutWhere() Rejection {
	f.Where = ""
	return f
}

// answers reports whether the reading settles an earlier rejection: by having read
// all of its place again, or by naming its object.
func (r *reading) answers(f Rejection) bool {
	switch {
	case r.whole:
		return true
	case r.places != nil:
		return r.places[f.Place]
	}
	if f.Owner != (model.Ref{}) && r.settles(r.own(f.Owner)) {
		return true
	}
	ref := r.own(f.Ref)
	return r.dropped[ref] || r.settles(ref)
}

// settles reports whether the reading names an object.
func (r *reading) settles(ref model.Ref) bool {
	_, listed := r.at[ref]
	_, rejected := r.rejected[ref]
	return listed || rejected || r.deleted[ref]
}
