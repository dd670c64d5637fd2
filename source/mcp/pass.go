package mcp

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// pass passes on the changes of an answer, after they were applied to the holding.
// The cost grows with the changes alone.
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

// listing returns a listing of the places that a whole answer has changed.
func (h *holding) listing(d *difference) (l source.Listing) {
	kind := d.collection.kind.Name
	enter := func(name string) {
		l.Places = append(l.Places, h.places(kind, name)...)
		if is, of := h.current(kind, name); is != nil {
			is.enter(of.place(name), &l.Objects, &l.Rejected)
			if is.passedOn { // the peer has no resource of its own there, so this is no drop
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

// change returns the change of an increment. A removed name is deleted even if it is
// unknown here: its record may still be stored because a drop is held.
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

// ended returns the places of an increment's removed names that no other collection has.
func (h *holding) ended(d *difference) (places []string) {
	for _, name := range d.removed {
		if is, _ := h.current(d.collection.kind.Name, name); is == nil {
			places = append(places, h.places(d.collection.kind.Name, name)...)
		}
	}
	return places
}
