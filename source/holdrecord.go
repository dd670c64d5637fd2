package source

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// holdWrites returns what has the store say what is held, once it has taken
// writes. It is exact: who restores it holds the same.
func (s *Supervisor) holdWrites(writes []model.Write) (more []model.Write) {
	h := s.holds
	h.resize(writes)
	if len(h.changed) == 0 {
		return nil
	}
	s.measure(writes)
	stored := map[model.Ref]model.Record{}
	for rec := range s.store.List(model.Filter{Kind: model.KindHold, Source: s.name}) {
		if hold, _ := rec.Spec.(model.Hold); h.changed[hold.Cause] {
			stored[rec.Ref] = rec
		}
	}
	for _, cause := range slices.SortedFunc(maps.Keys(h.changed), model.Ref.Compare) {
		one := h.by[cause]
		if one == nil {
			continue
		}
		specs := one.specs(h, s.index)
		for _, i := range slices.Sorted(maps.Keys(specs)) {
			want := model.Record{Ref: holdRef(s.name, cause, i), Origin: s.cfg.Origin, Spec: specs[i]}
			if have, is := stored[want.Ref]; !is || !want.SameContent(have) {
				want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
				more = append(more, model.Write{Record: want})
			}
			delete(stored, want.Ref)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(stored), model.Ref.Compare) {
		more = append(more, deletion(stored[ref]))
	}
	clear(h.changed)
	return more
}

// resize counts what objects will own of which something is held, and notes where
// that has to be said in other words.
func (h *holds) resize(writes []model.Write) {
	if h.empty() {
		return
	}
	resized := false
	for _, w := range writes {
		by := change(w)
		resized = resized || by != 0
		if object := head(w.Record); by != 0 && h.objects[object] != nil {
			if size, known := h.sizes[object]; known {
				h.sizes[object] = size + by
			}
			for cause, one := range h.by {
				if one.objects[object] > 0 {
					h.changed[cause] = true
				}
			}
		}
	}
	for cause, one := range h.by {
		if one.everything && resized {
			h.changed[cause] = true
		}
	}
}

// change is by how many records a write changes what is stored.
func change(w model.Write) int {
	switch {
	case w.Delete:
		return -1
	case w.Record.Revision == 0:
		return +1
	default:
		return 0
	}
}

// measure counts the records of each object that has to be spoken of and was not
// before, as they will be stored.
func (s *Supervisor) measure(writes []model.Write) {
	h, unknown := s.holds, map[model.Ref]bool{}
	for cause := range h.changed {
		one := h.by[cause]
		if one == nil || h.isEverything(one, s.index) {
			continue
		}
		for object := range one.objects {
			if _, known := h.sizes[object]; !known {
				unknown[object] = true
			}
		}
	}
	if len(unknown) == 0 {
		return
	}
	for rec := range s.families(unknown) {
		h.sizes[head(rec)]++
	}
	for _, w := range writes {
		if object := head(w.Record); unknown[object] {
			h.sizes[object] += change(w)
		}
	}
}
