package documents

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Listing returns the complete reading of some places, or of all when places is nil.
func (s *Set) Listing(places []string) model.Listing {
	out := model.Listing{Places: places, Ignored: maps.Clone(s.ignored)}
	if places == nil {
		places = slices.Sorted(maps.Keys(s.files))
	}
	for _, place := range places {
		v := s.files[place]
		if v == nil {
			continue
		}
		for i := range v.docs {
			s.list(&out, place, i, &v.docs[i])
		}
	}
	return out
}

func (s *Set) list(out *model.Listing, place string, i int, d *doc) {
	switch definitions := s.definitions[d.ref()]; {
	case s.IsMissing(place) && known(d.ref()) && !slices.Contains(definitions, definition{place, i}):
		return // the object has moved to another file
	case len(definitions) > 0 && definitions[0] != (definition{place, i}):
		out.Rejected = append(out.Rejected, s.duplicate(place, d, definitions[0]))
		return
	}
	if d.rejection != nil {
		out.Rejected = append(out.Rejected, *d.rejection)
	}
	if d.object.Valid() {
		out.Objects = append(out.Objects, d.object.Listed(place))
	}
}

// duplicate rejects a document that describes an object once more. The rejection
// carries the name, which the winner lists. Without the name, every record stored
// under this place would have to stay, even removed ones.
func (s *Set) duplicate(place string, d *doc, winner definition) model.Rejection {
	first := winner.place + ", which cannot be read at the moment"
	if docs := s.files[winner.place].docs; winner.index < len(docs) {
		first = docs[winner.index].where
	}
	return model.Rejection{
		Ref: d.ref(), Place: place, Object: d.object.String(), Where: d.where, Field: "metadata.name",
		Reason: "the same object is described at " + first +
			", and the file that had it first keeps it: remove one of the two, or give it another name",
	}
}

// Lists reports whether a file has listed documents that would be lost with it: all
// documents of a missing file may have moved.
func (s *Set) Lists(place string) bool {
	v := s.files[place]
	if !s.IsMissing(place) || v.Blank() {
		return !v.Blank()
	}
	listing := s.Listing([]string{place})
	return len(listing.Objects) > 0 || len(listing.Rejected) > 0 || len(v.ignored) > 0
}
