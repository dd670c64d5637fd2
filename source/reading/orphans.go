package reading

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// WithoutOrphans returns a reading without orphans: single records with an owner that
// is neither stored nor part of the reading. A record stored under another owner is
// an orphan, too. Find looks up a stored
// record, and rejected are the present rejections. The result ask says whether a listing
// can tell more about the orphans.
func WithoutOrphans(r *Reading, x *index.Index, find func(model.Ref) (model.Record, bool), rejected []model.Rejection) (_ *Reading, ask bool) {
	orphans := map[model.Ref]bool{}
	for _, ref := range r.singles {
		owner := r.Records[r.at[ref]].Owner
		have, stored := find(ref)
		switch {
		case !owns(r, x, owner):
			orphans[ref] = true
			ask = ask || !isRejected(rejected, owner)
		case stored && have.Owner != owner:
			orphans[ref], ask = true, true
		}
	}
	if len(orphans) == 0 {
		return r, false
	}
	rest := *r
	rest.Records, rest.singles = nil, nil
	rest.at = make(map[model.Ref]int, len(r.at))
	for _, rec := range r.Records {
		if !orphans[rec.Ref] {
			rest.at[rec.Ref] = len(rest.Records)
			rest.Records = append(rest.Records, rec)
		}
	}
	for _, ref := range r.singles {
		if !orphans[ref] {
			rest.singles = append(rest.singles, ref)
		}
	}
	rest.Dropped = maps.Clone(r.Dropped)
	for ref := range orphans {
		delete(rest.Dropped, ref)
	}
	return &rest, ask
}

// owns reports whether an object will be stored after a reading.
func owns(r *Reading, x *index.Index, object model.Ref) bool {
	if i, listed := r.at[object]; listed {
		return r.Records[i].Owner == (model.Ref{})
	}
	_, stored := x.Find(object)
	_, stays := r.rejected[object]
	return stored && (stays || !r.Deleted[object])
}

// isRejected reports whether the registry has a rejected version of an object. A
// listing would only repeat that.
func isRejected(rejected []model.Rejection, object model.Ref) bool {
	object.Source = ""
	return slices.ContainsFunc(rejected, func(f model.Rejection) bool { return f.Ref == object })
}
