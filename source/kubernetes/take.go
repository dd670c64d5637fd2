package kubernetes

import (
	"iter"
	"maps"
	"slices"
	"time"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// step is one listing or change to pass on, in order.
type step struct {
	change  source.Change
	listing *source.Listing // instead of the change
	lacks   parts           // parts that were not listed yet when the listing was made
}

// take returns the pending steps in order, and clears them.
func (m *mirror) take() []step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken()
}

func (m *mirror) taken() []step {
	if !m.primed {
		return nil
	}
	m.flush()
	steps := m.pending
	m.pending, m.since = nil, time.Time{}
	return steps
}

// first returns everything, and changes are kept from then on. Data of unread nodes
// and pods is taken from the stored endpoints.
func (m *mirror) first(stored func() iter.Seq[model.Record]) []step {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recall(stored)
	m.primed = true
	m.pending = nil
	return []step{m.everything()}
}

// all returns everything once more, after the pending steps.
func (m *mirror) all() []step {
	m.mu.Lock()
	defer m.mu.Unlock()
	steps := m.taken() // in one step with the rest, so that no older listing follows
	return append(steps, m.everything())
}

// list appends a listing of a place to the pending steps.
func (m *mirror) list(place string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
	m.append(place)
}

// append adds a listing of a place to the pending steps. The unlisted parts are noted
// with it: they may be listed by the time the listing is passed on.
func (m *mirror) append(place string) {
	m.pending = append(m.pending, step{listing: m.listing(place), lacks: m.unlisted.of(place)})
}

func (m *mirror) everything() step {
	whole := source.Listing{Observed: m.since, Ignored: m.left.counts()}
	if whole.Observed.IsZero() {
		whole.Observed = time.Now()
	}
	m.since = time.Time{}
	for _, place := range append([]string{services}, slices.Sorted(maps.Keys(m.istio))...) {
		part := m.listing(place)
		whole.Objects = append(whole.Objects, part.Objects...)
		whole.Rejected = append(whole.Rejected, part.Rejected...)
	}
	return step{listing: &whole, lacks: maps.Clone(m.unlisted)}
}

// listing returns everything of a place. Pending changes there are part of it.
func (m *mirror) listing(place string) *source.Listing {
	listing := &source.Listing{Places: []string{place}, Observed: m.since, Ignored: m.left.counts()}
	m.recount = false
	if place != services {
		for _, name := range slices.SortedFunc(maps.Keys(m.istio[place]), convert.Name.Compare) {
			enterObject(listing, place, m.istio[place][name])
		}
		clear(m.touched[place])
		return listing
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.groups), convert.Name.Compare) {
		listing.Objects = append(listing.Objects, m.groups[name].Objects()...)
		m.forget(name)
	}
	clear(m.dirty)
	return listing
}

// forget drops an empty group.
func (m *mirror) forget(name convert.Name) {
	if g := m.groups[name]; g != nil && g.Empty() {
		delete(m.groups, name)
	}
}

// flush appends the changes of single objects to the pending steps.
func (m *mirror) flush() {
	if !m.primed {
		return
	}
	change := source.Change{Observed: m.since}
	for _, name := range slices.SortedFunc(maps.Keys(m.dirty), convert.Name.Compare) {
		if g := m.groups[name]; g != nil {
			appendChange(&change, g.Take())
			m.forget(name)
		}
	}
	clear(m.dirty)
	for _, resource := range slices.Sorted(maps.Keys(m.touched)) {
		m.flushIstio(resource, &change)
	}
	if len(change.Upserts)+len(change.Deletes)+len(change.OwnedUpserts)+len(change.OwnedDeletes)+len(change.Rejected) > 0 {
		m.pending = append(m.pending, step{change: change})
	}
	if m.recount { // a change cannot carry the count, and this place has no records, so a listing costs little
		m.append(endpointSlices)
	}
}

func appendChange(change *source.Change, c convert.Change) {
	change.Upserts = append(change.Upserts, c.Upserts...)
	change.Deletes = append(change.Deletes, c.Deletes...)
	change.OwnedUpserts = append(change.OwnedUpserts, c.OwnedUpserts...)
	change.OwnedDeletes = append(change.OwnedDeletes, c.OwnedDeletes...)
}

func (m *mirror) flushIstio(resource string, change *source.Change) {
	listing := &source.Listing{}
	for _, name := range slices.SortedFunc(maps.Keys(m.touched[resource]), convert.Name.Compare) {
		if r, is := m.istio[resource][name]; is {
			enterObject(listing, resource, r)
		} else {
			change.Deletes = append(change.Deletes, refOf(resource, name))
		}
	}
	clear(m.touched[resource])
	change.Upserts = append(change.Upserts, listing.Objects...)
	change.Rejected = append(change.Rejected, listing.Rejected...)
}

// enterObject enters one of Istio's objects.
func enterObject(listing *source.Listing, resource string, r reading) {
	if r.Valid() {
		listing.Objects = append(listing.Objects, r.Listed(resource))
		return
	}
	listing.Rejected = append(listing.Rejected, r.Rejection(resource, resource))
}

func refOf(resource string, name convert.Name) model.Ref {
	return model.Ref{Kind: recordKind(resource), Key: model.Key{Namespace: name.Namespace, Name: name.Name}}
}
