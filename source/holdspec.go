package source

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/isthmus-mesh/isthmus/model"
)

// What is held is said in a record for each cause, or in several where it takes
// many items to say it: a store such as etcd takes no value of more than 1.5 MB,
// and one endpoint that comes back should not cost all others once more.
const (
	itemsAtMost = 2048 // of a record, about; with more there are more records
	itemsTarget = 512
)

// isEverything reports whether nothing else of the source is stored than is held for
// one cause, given the index of what will be stored.
func (h *holds) isEverything(one *hold, x *index) bool {
	return one.stock.stored == x.records() && one.stock == h.stock
}

// specs returns what the store has to say, by the number of the record.
func (one *hold) specs(h *holds, x *index) map[int]model.Hold {
	common := model.Hold{Cause: one.cause, Reason: one.reason, Since: one.since, Lost: uint32(one.had)}
	if one.everything = h.isEverything(one, x); one.everything {
		one.parts, common.Parts, common.Everything = 1, 1, true
		return map[int]model.Hold{0: common}
	}
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

// partsFor returns over how many records so many items are spread, being spread
// over some already: that stays while it is of a reasonable size.
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

// items says in as few words as it takes what is held, sorted.
func (one *hold) items(h *holds, x *index) []model.HoldItem {
	items := make([]model.HoldItem, 0, len(one.objects))
	say := func(ref model.Ref, extent model.Extent) {
		items = append(items, model.HoldItem{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Extent: extent})
	}
	for object, n := range one.objects {
		_, stored := x.place[object]
		switch records, size := h.objects[object], h.sizes[object]; {
		case n == size:
			say(object, model.WithOwned)
		case n == size-1 && stored && records[object] != one:
			say(object, model.OnlyOwned)
		default:
			for ref, by := range records {
				if by == one {
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

// holdRef names a record that says what is held for a cause.
func holdRef(source string, cause model.Ref, part int) model.Ref {
	ref := model.Ref{Kind: model.KindHold, Key: model.Key{Source: source, Namespace: cause.Namespace, Name: "*"}}
	if cause != (model.Ref{}) {
		ref.Name = string(cause.Kind) + "/" + cause.Name
	}
	if part > 0 {
		ref.Name = strconv.Itoa(part) + "/" + ref.Name
	}
	return ref
}

// restore reads what the store says is held, of records of which it has
// stored these. How far that was confirmed is kept as far as it is known.
func (h *holds) restore(said []model.Record, stored []part) *holds {
	next, found := newHolds(), model.Holds{}
	for _, rec := range said {
		found.Add(rec)
	}
	for _, p := range stored {
		owner := p.object
		if owner == p.ref {
			owner = model.Ref{}
		}
		if hold, held := found.Of(p.ref, owner); held {
			next.add(p, hold.Cause, hold.Since)
		}
	}
	for _, rec := range said {
		next.take(rec)
	}
	for cause, one := range next.by {
		if was := h.by[cause]; was != nil && one.stock.stored <= was.stock.stored {
			one.count = was.count
		}
	}
	return next
}

// take reads what a record of the store says, beside what it is about.
func (h *holds) take(rec model.Record) {
	spec, _ := rec.Spec.(model.Hold)
	one := h.by[spec.Cause]
	if one == nil {
		h.changed[spec.Cause] = true // so that the record goes
		return
	}
	delete(h.changed, spec.Cause)
	one.reason, one.since, one.had = spec.Reason, spec.Since, max(one.had, int(spec.Lost))
	one.parts, one.everything = max(one.parts, spec.Parts), one.everything || spec.Everything
}
