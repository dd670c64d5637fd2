package source

import (
	"maps"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// reading is a checked [Listing] or [Change]: the records that shall be stored
// afterwards, and how to judge stored records that are not among them. It is
// built once and compared with the store as often as the store asks for it.
type reading struct {
	source  string
	only    Only
	local   LocalAddresses
	whole   bool            // everything unlisted is gone
	places  map[string]bool // what is unlisted in one of them is gone; nil for a change
	removed map[string]bool // places whose end the registry reported

	records []model.Record    // complete but for what the store sets
	at      map[model.Ref]int // position in records
	objects []model.Ref       // those of records that own themselves

	deltas  []model.Ref        // those of records that were read without their owner's others
	dropped map[model.Ref]bool // owned records that are gone although their owner is not

	rejected  map[model.Ref]fault // why the last good version of an object stays
	broken    map[placeIn]string  // why everything unlisted in a place stays
	deleted   map[model.Ref]bool  // reported gone one by one
	rejection []Rejection         // for the status; without source

	observed time.Time
}

// fault is what is wrong with an object, and where it stands.
type fault struct{ reason, place string }

// placeIn is a place, or what stands there in one namespace.
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

// lists reports whether the reading is a listing, so that silence about an
// object it could have listed says that the object is gone.
func (r *reading) lists() bool { return r.whole || r.places != nil }

func setOf(places []string) map[string]bool {
	set := make(map[string]bool, len(places))
	for _, place := range places {
		set[place] = true
	}
	return set
}

// readChange checks a change. Of an object that is both upserted and deleted
// the upsert counts, as a registry that recreates something reports both.
func readChange(source string, only Only, local LocalAddresses, c Change) *reading {
	r := newReading(source, only, local, c.Upserts, c.Rejected)
	r.observed = c.Observed
	// Where a registry has no places, a change to something unknown is no word
	// about everything else.
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

// reject notes what the source could not take. The first reason given counts.
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
