package xds

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// list passes on all held resources, once every type was answered.
func (r *run) list(ctx context.Context) error {
	r.forget()
	r.protected = map[string]bool{}
	listing := source.Listing{Ignored: map[string]int{}, Observed: time.Now()}
	for _, kind := range r.kinds {
		here := map[string]bool{}
		for _, url := range r.urls(kind) {
			if r.held[url] != nil {
				maps.Copy(here, keys(r.held[url].resources))
			}
		}
		into := entering{listing: &listing}
		for _, name := range slices.Sorted(maps.Keys(here)) {
			into.enter(r.read(kind, name))
		}
		for _, url := range r.urls(kind) {
			r.reject(&listing, url)
		}
		if why, only := r.unread(kind); why != "" {
			r.protected[kind.Name] = true
			r.protect(&listing, kind, here, why, only)
		}
	}
	listing.Notices = r.echoed()
	if err := r.sink.Replace(ctx, listing); err != nil {
		return err
	}
	r.listed = true
	for url := range r.active.types {
		r.noteEchoes(url)
	}
	return nil
}

// noteEchoes counts the resources of a type that have echoes left out.
func (r *run) noteEchoes(url string) {
	if h := r.held[url]; h != nil {
		r.Echoed(url, len(h.echoes))
	}
}

// notify sends notices when the first echo of a type is left out, and when the last one is gone.
func (r *run) notify(ctx context.Context, h *holding, before bool) error {
	if !r.listed || before == (len(h.echoes) > 0) {
		return nil
	}
	return r.sink.Replace(ctx, source.Listing{Places: []string{}, Notices: r.echoed()})
}

// echoed returns a notice for each type with echoes that are left out.
func (r *run) echoed() (list []source.Notice) {
	list = []source.Notice{} // not nil: notices were looked for
	for _, kind := range r.kinds {
		for _, url := range urls(kind) {
			if h := r.held[url]; h != nil && len(h.echoes) > 0 {
				list = append(list, source.EchoNotice(url, slices.Collect(maps.Keys(h.echoes)), r.env.Self))
			}
		}
	}
	return list
}

// listAgain passes on everything once more. The server is connected and has sent
// nothing since the last listing.
func (r *run) listAgain(ctx context.Context) error {
	if !r.listed {
		return nil
	}
	return r.list(ctx)
}

// forget drops resources that the first answers of a stream without resumption lack:
// these answers were complete.
func (r *run) forget() {
	for url, k := range r.active.types {
		h := r.held[url]
		if k.names == nil || k.dropped || k.last.IsZero() {
			continue
		}
		if !h.incomplete {
			for _, name := range h.without(k.names) {
				h.drop(name)
			}
		}
		k.names = nil
	}
}

// unread returns why a kind is not completely known, and the names concerned, nil for
// any. The reason is empty if all is known.
func (r *run) unread(kind mcp.Kind) (why string, only map[string]bool) {
	if !r.answeredAtAll(kind) {
		return unanswered(r.urls(kind)[0]), nil
	}
	for _, url := range r.urls(kind) {
		if h := r.held[url]; h != nil && h.incomplete {
			return cmp.Or(r.whyNot(kind), "not all that the server sent of it can be read"), nil
		}
	}
	for _, url := range r.urls(kind) {
		switch k := r.active.types[url]; {
		case k == nil || k.dropped || len(k.unspoken) == 0:
		case k.last.IsZero():
			return unanswered(url), k.unspoken
		case k.claims && (k.resumed || k.marks): // it will report whether these are gone
			return "the server has not said yet whether it still has it: not all of its own sources may have been listed", k.unspoken
		}
	}
	return "", nil
}

func (r *run) known(kind mcp.Kind) bool {
	why, _ := r.unread(kind)
	return why == ""
}

func unanswered(url string) string {
	return fmt.Sprintf("the server does not answer for %s; have it answer, with nothing if there is none", url)
}

// protect keeps the stored records of a kind that is not completely known, or only
// some names of it.
func (r *run) protect(listing *source.Listing, kind mcp.Kind, here map[string]bool, why string, only map[string]bool) {
	is := emptyReading(kind, "a/a").Ref.Kind
	for rec := range r.env.Stored() {
		if rec.Kind != is || rec.Owner != (model.Ref{}) || here[rec.Namespace+"/"+rec.Name] {
			continue
		}
		if only != nil && !only[strings.TrimPrefix(rec.Place, kind.Name+"/")] {
			continue
		}
		ref := rec.Ref
		ref.Source = ""
		listing.Rejected = append(listing.Rejected, source.Rejection{
			Ref: ref, Place: rec.Place, Object: kind.Name + " " + rec.Namespace + "/" + rec.Name, Where: kind.URL(), Reason: why,
		})
	}
}

// reject reports the faults of the last answer for a type.
func (r *run) reject(listing *source.Listing, url string) {
	if h := r.held[url]; h != nil {
		for _, trouble := range h.trouble {
			listing.Rejected = append(listing.Rejected, source.Rejection{Place: url, Where: url, Reason: trouble})
		}
	}
}

// passOn passes on the changes of an answer, once everything was listed. A complete
// answer is a listing of the places concerned, so that missing records are judged.
// Any other answer is passed on record by record. If a protected kind becomes known,
// everything is listed and judged anew.
func (r *run) passOn(ctx context.Context, k *asked, d difference, a answer, trouble bool) error {
	switch {
	case !r.listed:
		return nil
	case r.protected[k.kind.Name] && r.known(k.kind):
		r.listed = false // until its first state is complete
		return nil
	case len(d.changed)+len(d.gone) == 0 && !trouble:
		return nil
	case a.full:
		return r.passListing(ctx, k, d.touched(), a)
	}
	return r.passChange(ctx, k, d.touched(), a, trouble)
}

func (r *run) passListing(ctx context.Context, k *asked, touched []string, a answer) error {
	listing := source.Listing{Places: []string{k.url}, Observed: a.at}
	r.reject(&listing, k.url)
	into := entering{listing: &listing}
	for _, name := range touched {
		e := r.read(k.kind, name)
		into.enter(e)
		listing.Places = append(listing.Places, e.place)
	}
	return r.sink.Replace(ctx, listing)
}

// passChange passes on records one by one. A resource that names no record, and a
// fault without a name, are passed on by their place.
func (r *run) passChange(ctx context.Context, k *asked, touched []string, a answer, trouble bool) error {
	places := source.Listing{Places: []string{k.url}, Observed: a.at}
	r.reject(&places, k.url)
	var records source.Listing
	change := source.Change{Observed: a.at}
	for _, name := range touched {
		e := r.read(k.kind, name)
		switch {
		case e.ref.Name == "":
			places.Places = append(places.Places, e.place)
			entering{listing: &places}.enter(e)
		case e.object == nil && e.rejection == nil:
			change.Deletes = append(change.Deletes, e.ref)
		default:
			entering{listing: &records}.enter(e)
		}
	}
	change.Upserts, change.Rejected = records.Objects, records.Rejected
	if len(places.Places) > 1 || trouble {
		if err := r.sink.Replace(ctx, places); err != nil {
			return err
		}
	}
	if len(change.Upserts)+len(change.Deletes)+len(change.Rejected) == 0 {
		return nil
	}
	return r.sink.Change(ctx, change)
}

// entry is the result of reading a name, held now or before.
type entry struct {
	place     string
	ref       model.Ref
	object    *source.Object
	rejection *source.Rejection // of the object, or of a part of it
	ignored   string            // kind of a resource that is not read
	passedOn  bool              // an echo that another Isthmus has passed on since
}

// read returns the entry of a name, read from the newest type that has it.
func (r *run) read(kind mcp.Kind, name string) entry {
	e := entry{place: kind.Name + "/" + name, ref: emptyReading(kind, name).Ref}
	for _, url := range r.urls(kind) {
		if r.held[url] == nil {
			continue
		}
		res, known := r.held[url].resources[name]
		if !known {
			continue
		}
		reading := res.read(kind)
		if delete(r.held[url].echoes, name); reading.WithoutEchoes(r.env.Self) > 0 {
			r.held[url].echoes[name] = true
		}
		switch {
		case reading.Echoed:
			e.passedOn = reading.Path.Last() != r.env.Self
			return e // the Isthmus that it came from reports its faults
		case reading.Valid():
			object := reading.Listed(e.place)
			e.object = &object
		case reading.Ignored:
			e.ignored = kind.Name
		}
		if len(reading.Problems)+len(reading.Rejected) > 0 {
			rejection := reading.Rejection(e.place, url+" "+short(name))
			rejection.Object = cmp.Or(rejection.Object, kind.Name+" "+short(name))
			e.rejection = &rejection
		}
		return e
	}
	return e
}

// entering adds entries to a listing.
type entering struct{ listing *source.Listing }

func (i entering) enter(e entry) {
	if e.object != nil {
		i.listing.Objects = append(i.listing.Objects, *e.object)
	}
	if e.rejection != nil {
		i.listing.Rejected = append(i.listing.Rejected, *e.rejection)
	}
	if e.ignored != "" && i.listing.Ignored != nil {
		i.listing.Ignored[e.ignored]++
	}
	if e.passedOn { // the server has no resource of its own there, so this is no drop
		i.listing.Removed = append(i.listing.Removed, e.place)
	}
}
