package hold

import (
	"cmp"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// A hold is one record of the store, or several if it has many items. Then one
// endpoint that comes back does not rewrite all others.
const (
	itemsAtMost = 2048 // of a record, about; with more there are more records
	itemsTarget = 512
)

// Writes returns the writes that store the holds of a source, after other writes. X is
// the index after these, and stored are the stored Hold records. The writes are exact: a
// process that restores them holds the same records.
func (h *Holds) Writes(source string, x *index.Index, writes []model.Write, stored iter.Seq[model.Record]) (more []model.Write) {
	h.resize(writes)
	if len(h.changed) == 0 {
		return nil
	}
	old := map[model.Ref]model.Record{}
	for rec := range stored {
		if h.changed[keyOf(rec)] {
			old[rec.Ref] = rec
		}
	}
	for key := range h.changed {
		one := h.by[key]
		if one == nil {
			continue
		}
		specs := one.specs(h, x)
		for _, i := range slices.Sorted(maps.Keys(specs)) {
			want := model.Record{Ref: one.record(source, i), Spec: specs[i]}
			if have, is := old[want.Ref]; !is || !want.SameContent(have) {
				want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
				more = append(more, model.Write{Record: want})
			}
			delete(old, want.Ref)
		}
	}
	slices.SortFunc(more, func(a, b model.Write) int { return a.Record.Compare(b.Record.Ref) })
	for _, ref := range slices.SortedFunc(maps.Keys(old), model.Ref.Compare) {
		more = append(more, reading.Deletion(old[ref]))
	}
	clear(h.changed)
	return more
}

// keyOf returns the key of the hold in a stored record.
func keyOf(rec model.Record) Key {
	spec, _ := rec.Spec.(model.Hold)
	return Key{spec.Cause, spec.Since.UnixNano()}
}

// resize marks holds to be stored anew if an object of theirs owns more records now,
// or fewer: the object may need other items.
func (h *Holds) resize(writes []model.Write) {
	if h.Empty() {
		return
	}
	var last model.Ref
	for _, w := range writes {
		object := index.Head(w.Record)
		if object == last || !w.Delete && w.Record.Revision != 0 {
			continue
		}
		last = object
		for _, is := range h.objects[object] {
			h.changed[is.Key()] = true
		}
	}
}

// specs returns the specifications of a hold's records, by the number of the record.
func (one *Hold) specs(h *Holds, x *index.Index) map[int]model.Hold {
	common := model.Hold{Cause: one.cause, Reason: one.Reason, Since: one.Since, Lost: uint32(one.Had)}
	items := one.items(h, x)
	one.parts = partsFor(len(items), one.parts)
	lists := map[int][]model.HoldItem{0: nil}
	for _, item := range items {
		at := int(hashOf(item) % one.parts)
		lists[at] = append(lists[at], item)
	}
	specs := make(map[int]model.Hold, len(lists))
	for at, list := range lists {
		spec := common
		spec.Items = model.ListOf(list...)
		if at == 0 {
			spec.Parts = one.parts
		}
		specs[at] = spec
	}
	return specs
}

// partsFor returns the number of records for so many items. The present number stays
// while it is reasonable.
func partsFor(items int, parts uint32) uint32 {
	if parts > 0 && items <= itemsAtMost*int(parts) && (parts == 1 || items >= int(parts)*itemsTarget/8) {
		return parts
	}
	for parts = 1; items > itemsTarget*int(parts) && items > itemsAtMost; parts *= 2 {
	}
	return parts
}

func hashOf(item model.HoldItem) uint32 {
	h := fnv.New32a()
	for _, text := range [...]string{string(item.Kind), item.Namespace, item.Name} {
		_, _ = h.Write([]byte(text))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum32()
}

// items names the records of a hold by as few items as possible, sorted.
func (one *Hold) items(h *Holds, x *index.Index) []model.HoldItem {
	items := make([]model.HoldItem, 0, len(one.objects))
	say := func(ref model.Ref, extent model.Extent) {
		items = append(items, model.HoldItem{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Extent: extent})
	}
	for object, n := range one.objects {
		itself := h.Of(index.Part{Ref: object, Object: object}).Hold == one
		switch owned := x.Owns(object); {
		case itself && n == owned+1:
			say(object, model.WithOwned)
		case !itself && n == owned:
			say(object, model.OnlyOwned)
		default:
			for ref, by := range h.objects[object] {
				if by.Hold == one {
					say(ref, model.ThisRecord)
				}
			}
		}
	}
	slices.SortFunc(items, compareItems)
	return items
}

func compareItems(a, b model.HoldItem) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Extent, b.Extent),
	)
}

// record names a record of a hold.
func (one *Hold) record(source string, part int) model.Ref {
	ref := model.Ref{Kind: model.KindHold, Key: model.Key{Source: source, Namespace: one.cause.Namespace, Name: "*"}}
	if one.cause != (model.Ref{}) {
		ref.Name = string(one.cause.Kind) + "/" + one.cause.Name
	}
	ref.Name += "@" + one.Since.Format(time.RFC3339Nano)
	if part > 0 {
		ref.Name = strconv.Itoa(part) + "/" + ref.Name
	}
	return ref
}

// restore builds the holds that stored Hold records describe, for the given stored
// parts. Known clocks of held records are kept.
func (h *Holds) restore(said []model.Record, stored []index.Part) *Holds {
	next, found := NewHolds(), model.Holds{}
	for _, rec := range said {
		found.Add(rec)
	}
	for _, p := range stored {
		owner := p.Object
		if owner == p.Ref {
			owner = model.Ref{}
		}
		if hold, is := found.Of(p.Ref, owner); is {
			next.add(p, hold.Cause, hold.Since, Terms{hold.Reason, int(hold.Lost)}, Clock{})
			if was := h.Of(p); was.Hold != nil {
				next.wind(p, was)
			}
		}
	}
	clear(next.changed)
	for _, rec := range said {
		next.take(rec)
	}
	return next
}

// take compares a stored Hold record with its hold. A record that an older Isthmus
// has written is rewritten, and a record without stored parts is deleted.
func (h *Holds) take(rec model.Record) {
	spec, _ := rec.Spec.(model.Hold)
	one := h.by[keyOf(rec)]
	if one == nil {
		h.changed[keyOf(rec)] = true
		return
	}
	one.parts = max(one.parts, spec.Parts)
	if spec.Everything || spec.Parts > 0 && rec.Ref != one.record(rec.Source, 0) {
		h.changed[keyOf(rec)] = true
	}
}

// Deletions returns the writes that delete the held records, except of objects with a record that
// is not held: that record was reported since, and stays until a listing lacks it.
func (h *Holds) Deletions(stored iter.Seq[model.Record]) (writes []model.Write) {
	if h.Empty() {
		return nil
	}
	var objects []model.Record
	reported := map[model.Ref]bool{}
	for rec := range stored {
		is := index.PartOf(rec)
		switch held := h.Has(is); {
		case !held && h.objects[is.Object] != nil:
			reported[is.Object] = true
		case held && is.Ref == is.Object:
			objects = append(objects, rec)
		case held:
			writes = append(writes, reading.Deletion(rec))
		}
	}
	for _, rec := range objects {
		if !reported[rec.Ref] {
			writes = append(writes, reading.Deletion(rec))
		}
	}
	return writes
}
