package source

import (
	"maps"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// reading is a checked [Listing] or [Change]: the records to store, and the data for
// judging stored records that are not among them. It is built once and compared with
// the store as often as necessary.
type reading struct {
	source  string
	only    Only
	local   LocalAddresses
	whole   bool            // everything unlisted is gone
	places  map[string]bool // unlisted records of these places are gone; nil for a change
	removed map[string]bool // places that the registry reported as ended

	records []model.Record    // complete, without the fields that the store sets
	at      map[model.Ref]int // position in records
	objects []model.Ref       // the objects among records

	deltas  []model.Ref        // records that were read without their owner's others
	dropped map[model.Ref]bool // owned records that are gone although their owner is not

	rejected  map[model.Ref]fault // why the last good version of an object stays
	broken    map[placeIn]string  // why everything unlisted in a place stays
	deleted   map[model.Ref]bool  // reported gone one by one
	rejection []Rejection         // for the status; without source

	observed time.Time
}

// fault is the fault of an object, and its place.
type fault struct{ reason, place string }

// placeIn is a place, or the part of it in one namespace.
type placeIn struct{ place, namespace string }

// readListing checks a listing.
func readListing(source string, only Only, local LocalAddresses, l Listing) *reading {
	r := newReading(source, only, local, l.Objects, l.Rejected)
	r.observed = l.Observed
	r.removed = setOf(l.Removed)
	if l.Places == nil {
		r.whole = true
		return r
	}
	r.places = setOf(l.Places)
	return r
}

// lists reports whether the reading is a listing: an object that it could have listed
// and did not is gone.
func (r *reading) lists() bool { return r.whole || r.places != nil }

func setOf(places []string) map[string]bool {
	set := make(map[string]bool, len(places))
	for _, place := range places {
		set[place] = true
	}
	return set
}

// readChange checks a change. If an object is both upserted and deleted, the upsert
// counts: a registry that recreates an object reports both.
func readChange(source string, only Only, local LocalAddresses, c Change) *reading {
	r := newReading(source, only, local, c.Upserts, c.Rejected)
	r.observed = c.Observed
	// In a registry without places, a rejection of an unknown object keeps no other
	// record.
	maps.DeleteFunc(r.broken, func(in placeIn, _ string) bool { return in.place == "" })
	for _, ref := range c.Deletes {
		r.deleted[r.own(ref)] = true
	}
	r.readOwned(c)
	return r
}

func newReading(source string, only Only, local LocalAddresses, objects []Object, rejected []Rejection) *reading {
	size := len(objects) + 1
	for _, o := range objects {
		size += len(o.Owned)
	}
	r := &reading{
		source: source, only: only, local: local,
		records:  make([]model.Record, 0, size),
		at:       make(map[model.Ref]int, size),
		objects:  make([]model.Ref, 0, len(objects)),
		rejected: map[model.Ref]fault{}, broken: map[placeIn]string{}, deleted: map[model.Ref]bool{},
	}
	for _, f := range rejected {
		r.reject(f)
	}
	for _, o := range objects {
		r.add(o)
	}
	return r
}

func markRef(source string) model.Ref {
	return model.Ref{Kind: model.KindSource, Key: model.Key{Source: source, Name: source}}
}

// own returns ref as a reference into this source.
func (r *reading) own(ref model.Ref) model.Ref {
	ref.Source = r.source
	return ref
}

// reject adds a rejection of the source. The first reason given counts.
func (r *reading) reject(f Rejection) {
	f.Ref.Source, f.Outside, f.Owner = "", false, model.Ref{}
	if f.Reason == "" {
		f.Reason = "rejected by the source without a reason"
	}
	r.rejection = append(r.rejection, f)
	if known(f.Ref) {
		setDefault(r.rejected, r.own(f.Ref), fault{f.Reason, f.Place})
	} else {
		setDefault(r.broken, placeIn{f.Place, f.Namespace}, f.Reason)
	}
}
