package reading

import (
	"iter"
	"maps"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// Reading is a checked listing or change: the records to store, and the data for judging
// stored records that are not among them. It is built once and compared with the store
// as often as necessary.
type Reading struct {
	Whole    bool            // everything unlisted is gone
	Removed  map[string]bool // places that the registry reported as ended
	Observed time.Time

	Records    []model.Record     // complete, without the fields that the store sets
	Objects    []model.Ref        // the objects among Records
	Deleted    map[model.Ref]bool // objects that were reported deleted one by one
	Dropped    map[model.Ref]bool // owned records that are gone although their owner is not
	Rejections []model.Rejection  // for the status; without source

	at       map[model.Ref]int   // position in Records
	singles  []model.Ref         // records that were read without their owner's others
	places   map[string]bool     // unlisted records of these places are gone; nil for a change
	rejected map[model.Ref]fault // why the last good version of an object stays
	broken   map[placeIn]string  // why everything unlisted in a place stays

	limits Limits
}

// Limits are the parts of a registry that a source may have, and the network of its endpoints.
type Limits struct {
	Source  string // its name
	Only    source.Only
	Local   source.LocalAddresses
	Network source.Network
}

// fault is the fault of an object, and its place.
type fault struct{ reason, place string }

// placeIn is a place, or the part of it in one namespace.
type placeIn struct{ place, namespace string }

// OfListing checks a listing.
func OfListing(limits Limits, l model.Listing) *Reading {
	r := newReading(limits, l.Objects, l.Rejected)
	r.Observed = l.Observed
	r.Removed = setOf(l.Removed)
	if l.Places == nil {
		r.Whole = true
		return r
	}
	r.places = setOf(l.Places)
	return r
}

// OfChange checks a change. If an object is both upserted and deleted, the upsert
// counts: a registry that recreates an object reports both.
func OfChange(limits Limits, c model.Change) *Reading {
	r := newReading(limits, c.Upserts, c.Rejected)
	r.Observed = c.Observed
	// In a registry without places, a rejection of an unknown object keeps no other
	// record.
	maps.DeleteFunc(r.broken, func(in placeIn, _ string) bool { return in.place == "" })
	for _, ref := range c.Deletes {
		r.Deleted[r.own(ref)] = true
	}
	r.addSingles(c)
	return r
}

func newReading(limits Limits, objects []model.Object, rejected []model.Rejection) *Reading {
	size := len(objects) + 1
	for _, o := range objects {
		size += len(o.Owned)
	}
	r := &Reading{
		limits:   limits,
		Records:  make([]model.Record, 0, size),
		at:       make(map[model.Ref]int, size),
		Objects:  make([]model.Ref, 0, len(objects)),
		rejected: map[model.Ref]fault{}, broken: map[placeIn]string{}, Deleted: map[model.Ref]bool{},
	}
	for _, f := range rejected {
		r.reject(f)
	}
	for _, o := range objects {
		r.add(o)
	}
	return r
}

// Lists reports whether the reading is a listing: an object that it could have listed
// and did not is gone.
func (r *Reading) Lists() bool { return r.Whole || r.places != nil }

// Has reports whether a record is among the records to store.
func (r *Reading) Has(ref model.Ref) bool {
	_, listed := r.at[ref]
	return listed
}

func setOf(places []string) map[string]bool {
	set := make(map[string]bool, len(places))
	for _, place := range places {
		set[place] = true
	}
	return set
}

// own returns ref as a reference into this source.
func (r *Reading) own(ref model.Ref) model.Ref {
	ref.Source = r.limits.Source
	return ref
}

// reject adds a rejection of the source. The first reason given counts.
func (r *Reading) reject(f model.Rejection) {
	f.Ref.Source, f.Outside, f.Owner = "", false, model.Ref{}
	if f.Reason == "" {
		f.Reason = "rejected by the source without a reason"
	}
	r.Rejections = append(r.Rejections, f)
	if known(f.Ref) {
		setDefault(r.rejected, r.own(f.Ref), fault{f.Reason, f.Place})
	} else {
		setDefault(r.broken, placeIn{f.Place, f.Namespace}, f.Reason)
	}
}

// Singles yields the records that the change names one by one.
func (r *Reading) Singles() iter.Seq[model.Ref] {
	return func(yield func(model.Ref) bool) {
		for _, ref := range r.singles {
			if !yield(ref) {
				return
			}
		}
		for ref := range r.Dropped {
			if _, listed := r.at[ref]; !listed && !yield(ref) {
				return
			}
		}
	}
}

// Concerned returns the objects that a reading names, or may end by omission.
func (r *Reading) Concerned(x *index.Index) map[model.Ref]bool {
	objects := map[model.Ref]bool{}
	for _, ref := range r.Objects {
		objects[ref] = true
	}
	for ref := range r.rejected {
		objects[ref] = true
	}
	for ref := range r.Deleted {
		objects[ref] = true
	}
	for place := range r.places {
		for ref := range x.ObjectsAt(place) {
			objects[ref] = true
		}
	}
	for in := range r.broken {
		for ref := range x.ObjectsAt(in.place) {
			if in.namespace == "" || in.namespace == ref.Namespace {
				objects[ref] = true
			}
		}
	}
	return objects
}
