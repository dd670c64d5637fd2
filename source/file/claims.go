package file

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// registry holds the documents of all files, and the file that owns each name. It is
// a value of one goroutine and does no I/O.
type registry struct {
	files   map[string]*version // by place
	claims  map[model.Ref][]claim
	ignored map[string]int // over all files, by kind
	// missing has the time since when files are missing that may be back in a moment.
	// Their documents stay until then, except for names that another file describes.
	missing map[string]time.Time
	missed  time.Time // time of the last one
	// holders has the file that owns each name: a file keeps a name for as long as it
	// describes the object. At the start the owner is the stored one.
	holders map[model.Ref]string
}

// claim is one document that describes an object. If several do, the document in the
// owner's file wins, so that a new file takes no name from others. Without a stored
// owner, the first file by place wins. Within a file, the first document wins. A
// rejected document counts, too: its last good version stays, so no other document
// may take over.
type claim struct {
	place string
	index int // in docs of the version; past their end for a name that is only held
}

func newRegistry() *registry {
	return &registry{
		files: map[string]*version{}, claims: map[model.Ref][]claim{}, ignored: map[string]int{},
		missing: map[string]time.Time{}, holders: map[model.Ref]string{},
	}
}

// refs yields the names that a version describes.
func (v *version) refs() iter.Seq2[model.Ref, int] {
	return func(yield func(model.Ref, int) bool) {
		if v == nil {
			return
		}
		for i := range v.docs {
			if ref := v.docs[i].ref(); known(ref) && !yield(ref, i) {
				return
			}
		}
		for i, ref := range v.held {
			if !yield(ref, len(v.docs)+i) {
				return
			}
		}
	}
}

// apply takes new versions of some files, nil for files that are gone. It returns the
// places with a changed listing, in order. These are the files themselves, and files
// that share a name with them: its ownership may have changed.
func (r *registry) apply(changes map[string]*version) []string {
	affected, touched := map[string]bool{}, map[model.Ref]bool{}
	for place, next := range changes {
		affected[place] = true
		for _, v := range []*version{r.files[place], next} {
			for ref := range v.refs() {
				touched[ref] = true
			}
		}
		r.withdraw(place, r.files[place], affected)
		r.count(r.files[place], -1)
		r.count(next, +1)
		delete(r.files, place)
		delete(r.missing, place)
		if next != nil {
			r.files[place] = next
		}
	}
	for place, next := range changes {
		r.submit(place, next, affected)
	}
	for ref := range touched {
		r.settle(ref)
	}
	return sorted(affected)
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func (r *registry) count(v *version, by int) {
	if v == nil {
		return
	}
	for kind, n := range v.ignored {
		if r.ignored[kind] += by * n; r.ignored[kind] == 0 {
			delete(r.ignored, kind)
		}
	}
}

func (r *registry) withdraw(place string, v *version, affected map[string]bool) {
	for ref := range v.refs() {
		left := slices.DeleteFunc(r.claims[ref], func(c claim) bool { return c.place == place })
		if len(left) == 0 {
			delete(r.claims, ref)
			continue
		}
		r.claims[ref] = left
		for _, c := range left {
			affected[c.place] = true
		}
	}
}

func (r *registry) submit(place string, v *version, affected map[string]bool) {
	for ref, i := range v.refs() {
		for _, c := range r.claims[ref] {
			affected[c.place] = true
		}
		claims := slices.Concat(r.present(ref), []claim{{place, i}})
		r.rank(ref, claims)
		r.claims[ref] = claims
	}
}

// listing returns the complete reading of some places, or of all when places is nil.
func (r *registry) listing(places []string) source.Listing {
	out := source.Listing{Places: places, Ignored: maps.Clone(r.ignored)}
	if places == nil {
		places = slices.Sorted(maps.Keys(r.files))
	}
	for _, place := range places {
		v := r.files[place]
		if v == nil {
			continue
		}
		for i := range v.docs {
			r.list(&out, place, i, &v.docs[i])
		}
	}
	return out
}

func (r *registry) list(out *source.Listing, place string, i int, d *doc) {
	switch claims := r.claims[d.ref()]; {
	case r.isMissing(place) && known(d.ref()) && !slices.Contains(claims, claim{place, i}):
		return // the object has moved to another file
	case len(claims) > 0 && claims[0] != (claim{place, i}):
		out.Rejected = append(out.Rejected, r.duplicate(place, d, claims[0]))
		return
	}
	if d.rejection != nil {
		out.Rejected = append(out.Rejected, *d.rejection)
		return
	}
	out.Objects = append(out.Objects, d.object.Listed(place))
}

// duplicate rejects a document that describes an object once more. The rejection
// carries the name, which the winner lists. Without the name, every record stored
// under this place would have to stay, even removed ones.
func (r *registry) duplicate(place string, d *doc, winner claim) source.Rejection {
	first := winner.place + ", which cannot be read at the moment"
	if docs := r.files[winner.place].docs; winner.index < len(docs) {
		first = docs[winner.index].where
	}
	return source.Rejection{
		Ref: d.ref(), Place: place, Object: d.object.String(), Where: d.where, Field: "metadata.name",
		Reason: "the same object is described at " + first +
			", and the file that had it first keeps it: remove one of the two, or give it another name",
	}
}
