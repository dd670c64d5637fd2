package xds

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// report makes messages for the supervisor of the held resources.
type report struct {
	held *held
	self string // resources that came through the Isthmus of this name are left out
}

// add adds all held resources of a kind to a listing.
func (r report) add(listing *model.Listing, of kind) {
	resources := r.held.kind(of.Definition)
	resources.Take()
	for e := range r.entries(of, slices.Collect(resources.Keys())) {
		e.AddTo(listing)
	}
	for _, url := range of.urls {
		r.reject(listing, url)
	}
}

// listing returns a listing of the changed resources of a type's kind, and of the
// faults of the type's last answer.
func (r report) listing(k *asked, observed time.Time) model.Listing {
	return r.placesOf(k, r.entries(k.kind, r.held.kind(k.kind.Definition).Take()), observed)
}

func (r report) placesOf(k *asked, entries iter.Seq[mirror.Entry], observed time.Time) model.Listing {
	listing := mirror.ListingOf(entries)
	listing.Places, listing.Observed = append(listing.Places, k.url), observed
	r.reject(&listing, k.url)
	return listing
}

// change returns the changed resources of a type's kind one by one. A resource that
// names no record, and a fault without a name, are in the listing of their places.
func (r report) change(k *asked, observed time.Time) (model.Change, model.Listing) {
	var named, nameless []mirror.Entry
	for e := range r.entries(k.kind, r.held.kind(k.kind.Definition).Take()) {
		if e.Ref.Name == "" {
			nameless = append(nameless, e)
		} else {
			named = append(named, e)
		}
	}
	change := mirror.ChangeOf(slices.Values(named))
	change.Observed = observed
	return change, r.placesOf(k, slices.Values(nameless), observed)
}

// reject reports the faults of the last answer for a type.
func (r report) reject(listing *model.Listing, url string) {
	if h := r.held.types[url]; h != nil {
		for _, trouble := range h.trouble {
			listing.Rejected = append(listing.Rejected, model.Rejection{Place: url, Where: url, Reason: trouble})
		}
	}
}

// notices returns a notice for each type with echoes that are left out.
func (r report) notices(kinds []kind) (list []model.Notice) {
	list = []model.Notice{} // not nil: notices were looked for
	for _, k := range kinds {
		for _, url := range k.urls {
			if h := r.held.types[url]; h != nil && len(h.echoes) > 0 {
				list = append(list, source.EchoNotice(url, slices.Collect(maps.Keys(h.echoes)), r.self))
			}
		}
	}
	return list
}

// entries yields the outcomes of names of a kind, in order.
func (r report) entries(of kind, names []string) iter.Seq[mirror.Entry] {
	slices.Sort(names)
	return func(yield func(mirror.Entry) bool) {
		for _, name := range names {
			if !yield(r.entry(of, name)) {
				return
			}
		}
	}
}

// entry returns the outcome of a name, held now or before, by the newest type that has it.
func (r report) entry(of kind, name string) mirror.Entry {
	place := of.Name + "/" + name
	e := mirror.Entry{Ref: emptyReading(of.Definition, name).Ref, Places: []string{place}}
	res, in := r.held.kind(of.Definition).Get(name)
	if in == nil {
		return e
	}
	reading, echoes := res.read(of.Definition), r.held.types[in.Name].echoes
	if delete(echoes, name); reading.WithoutEchoes(r.self) > 0 {
		echoes[name] = true
	}
	switch {
	case reading.Echoed:
		e.PassedOn = reading.Path.Last() != r.self
		return e // the Isthmus that it came from reports its faults
	case reading.Valid():
		object := reading.Listed(place)
		e.Object = &object
	case reading.Ignored:
		e.Ignored = of.Name
	}
	if len(reading.Problems)+len(reading.Rejected) > 0 {
		rejection := reading.Rejection(place, in.Name+" "+short(name))
		rejection.Object = cmp.Or(rejection.Object, of.Name+" "+short(name))
		e.Rejected = &rejection
	}
	return e
}
