package file

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// inherit takes the owners of names from the stored records before files are read.
func (r *registry) inherit(stored iter.Seq[model.Record]) {
	for rec := range stored {
		if rec.Owner == (model.Ref{}) && !rec.Kind.Reserved() && rec.Place != "" {
			ref := rec.Ref
			ref.Source = ""
			r.holders[ref] = rec.Place
		}
	}
}

// unread returns the places of stored records without a file read yet.
func (r *registry) unread() []string {
	places := map[string]bool{}
	for _, place := range r.holders {
		if r.files[place] == nil {
			places[place] = true
		}
	}
	return sorted(places)
}

// recall completes the first version that is read of a file. If a part of it cannot
// be understood, it keeps the names stored for the file.
func (r *registry) recall(place string, v *version) *version {
	if !v.vague() {
		return v
	}
	stored := &version{}
	for ref, holder := range r.holders {
		if holder == place {
			stored.held = append(stored.held, ref)
		}
	}
	return v.after(stored)
}

// settle updates the owner of a name. A file that is missing for a moment owns the
// name again when it is back.
func (r *registry) settle(ref model.Ref) {
	claims := r.claims[ref]
	switch {
	case len(claims) == 0:
		delete(r.holders, ref)
	case !r.isMissing(r.holders[ref]):
		r.holders[ref] = claims[0].place
	}
}

// rank orders the claims of a name, the winner first.
func (r *registry) rank(ref model.Ref, claims []claim) {
	others := func(c claim) int {
		if c.place == r.holders[ref] {
			return 0
		}
		return 1
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(others(a), others(b)), cmp.Compare(a.place, b.place), cmp.Compare(a.index, b.index))
	})
}
