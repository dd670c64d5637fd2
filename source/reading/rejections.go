package reading

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

func subjectOf(f model.Rejection) subject {
	return subject{f.Ref, placeIn{f.Place, f.Namespace}, f.Object}
}

// known reports whether a reference is complete enough to name a record.
func known(ref model.Ref) bool { return ref.Kind != "" && ref.Name != "" }

func compareRejections(a, b model.Rejection) int {
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

// Standing returns the present rejections after the reading, sorted, and the new
// ones among them. It never writes to old, which others read.
func Standing(r *Reading, old []model.Rejection) (standing, fresh []model.Rejection) {
	if len(old) == 0 && len(r.Rejections) == 0 {
		return nil, nil
	}
	before := make(map[model.Rejection]bool, len(old))
	for _, f := range old {
		before[WithoutWhere(f)] = true
	}
	standing = slices.Clone(r.Rejections)
	for _, f := range r.Rejections {
		if !before[WithoutWhere(f)] {
			fresh = append(fresh, f)
		}
	}
	anew := make(map[subject]bool, len(r.Rejections))
	for _, f := range r.Rejections {
		anew[subjectOf(f)] = true
	}
	for _, f := range old {
		if !anew[subjectOf(f)] && !answers(r, f) {
			standing = append(standing, f)
		}
	}
	slices.SortFunc(standing, compareRejections)
	return slices.Compact(standing), fresh
}

// Unread reports whether a part of a registry is unknown, since it was rejected.
// Parts that the source's confinement excludes, and objects without effect, do not count.
func Unread(rejected []model.Rejection) bool {
	return slices.ContainsFunc(rejected, func(f model.Rejection) bool { return !f.Outside && !f.NoEffect })
}

// WithoutWhere returns the rejection without its line number, which moves whenever
// text above it is edited.
func WithoutWhere(f model.Rejection) model.Rejection {
	f.Where = ""
	return f
}

// answers reports whether the reading settles an earlier rejection: by having read
// all of its place again, or by naming its object.
func answers(r *Reading, f model.Rejection) bool {
	switch {
	case r.Whole:
		return true
	case r.places != nil:
		return r.places[f.Place]
	}
	if f.Owner != (model.Ref{}) && settles(r, r.own(f.Owner)) {
		return true
	}
	ref := r.own(f.Ref)
	return r.Dropped[ref] || settles(r, ref)
}

// settles reports whether the reading names an object.
func settles(r *Reading, ref model.Ref) bool {
	_, listed := r.at[ref]
	_, rejected := r.rejected[ref]
	return listed || rejected || r.Deleted[ref]
}
