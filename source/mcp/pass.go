package mcp

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// pass hands on what an answer has changed, once that is applied to the holding. It
// costs as much as what is different.
func (h *holding) pass(ctx context.Context, sink source.Sink, d *difference, observed time.Time) error {
	if d.whole {
		l := h.listing(d)
		if len(l.Places) == 0 {
			return nil
		}
		l.Observed = observed
		return sink.Replace(ctx, l)
	}
	c := h.change(d)
	if len(c.Upserts)+len(c.Deletes)+len(c.Rejected) == 0 {
		return nil
	}
	c.Observed = observed
	return sink.Change(ctx, c)
}

// listing is that of the places in which a whole answer has changed something.
func (h *holding) listing(d *difference) (l source.Listing) {
	kind := d.collection.kind.Name
	enter := func(name string) {
		l.Places = append(l.Places, h.places(kind, name)...)
		if is, of := h.current(kind, name); is != nil {
			is.enter(of.place(name), &l.Objects, &l.Rejected)
			if is.passedOn { // the peer says that it has nothing of its own there, which is no drop
				l.Removed = append(l.Removed, h.places(kind, name)...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.changed)) {
		if _, of := h.current(kind, name); of == d.collection {
			enter(name)
		}
	}
	slices.Sort(d.gone)
	for _, name := range d.gone {
		enter(name)
	}
	return l
}

// change is that of an increment. What it removes goes even if it is not known: it
// may be one that is stored because a drop of it is held.
func (h *holding) change(d *difference) (out source.Change) {
	c := d.collection
	enter := func(name string) {
		is, of := h.current(c.kind.Name, name)
		if is == nil || is.object == nil && is.rejected == nil {
			out.Deletes = append(out.Deletes, refOf(c, name))
			return
		}
		is.enter(of.place(name), &out.Upserts, &out.Rejected)
	}
	for _, name := range slices.Sorted(maps.Keys(d.changed)) {
		if _, of := h.current(c.kind.Name, name); of == c {
			enter(name)
		}
	}
	for _, name := range d.removed {
		enter(name)
	}
	return out
}

// ended are the places of what an increment removes, if no other collection has it.
func (h *holding) ended(d *difference) (places []string) {
	for _, name := range d.removed {
		if is, _ := h.current(d.collection.kind.Name, name); is == nil {
			places = append(places, h.places(d.collection.kind.Name, name)...)
		}
	}
	return places
}
