package xds

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// list passes on all held resources, once every type was answered.
func (r *run) list(ctx context.Context) error {
	r.forget()
	r.protected = map[string]bool{}
	listing := model.Listing{Ignored: map[string]int{}, Observed: time.Now()}
	for _, k := range r.kinds {
		r.report.add(&listing, k)
		if why, only := r.unread(k); why != "" {
			r.protected[k.Name] = true
			r.protect(&listing, k, r.env.Stored(), why, only)
		}
	}
	listing.Notices = r.report.notices(r.kinds)
	if err := r.sink.Replace(ctx, listing); err != nil {
		return err
	}
	r.listed = true
	for url := range r.types {
		r.noteEchoes(url)
	}
	return nil
}

// listAgain passes on everything once more. The server is connected and has sent
// nothing since the last listing.
func (r *run) listAgain(ctx context.Context) error {
	if !r.listed {
		return nil
	}
	return r.list(ctx)
}

// noteEchoes counts the resources of a type that have echoes left out.
func (r *run) noteEchoes(url string) {
	if h := r.held.types[url]; h != nil {
		r.Echoed(url, len(h.echoes))
	}
}

// notify sends notices when the first echo of a type is left out, and when the last one is gone.
func (r *run) notify(ctx context.Context, h *holding, before bool) error {
	if !r.listed || before == (len(h.echoes) > 0) {
		return nil
	}
	return r.sink.Replace(ctx, model.Listing{Places: []string{}, Notices: r.report.notices(r.kinds)})
}

// passOn passes on the changes of an answer, once everything was listed. A complete
// answer is a listing of the places concerned, so that missing records are judged.
// Any other answer is passed on record by record. If a protected kind becomes known,
// everything is listed and judged anew.
func (r *run) passOn(ctx context.Context, k *asked, d difference, a answer, trouble bool) error {
	switch {
	case !r.listed:
		return nil
	case r.protected[k.kind.Name] && r.isKnown(k.kind):
		r.listed = false // until its first state is complete
		return nil
	case d.IsEmpty() && !trouble:
		return nil
	case a.full:
		return r.sink.Replace(ctx, r.report.listing(k, a.at))
	}
	change, places := r.report.change(k, a.at)
	if len(places.Places) > 1 || trouble {
		if err := r.sink.Replace(ctx, places); err != nil {
			return err
		}
	}
	if mirror.IsEmpty(change) {
		return nil
	}
	return r.sink.Change(ctx, change)
}
