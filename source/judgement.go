package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// explain adds the reasons for a plan's holds.
func (f *baselineState) explain(source string, cfg Hold, p *plan) {
	held := map[model.Ref]*hold{}
	for _, c := range p.held {
		one := held[c.cause]
		if one == nil {
			one = &hold{objects: map[model.Ref]int{}}
			held[c.cause] = one
		}
		one.stock.add(c.ref, +1)
		one.objects[c.object]++
	}
	for cause, one := range held {
		p.terms[cause] = terms{
			reason: fmt.Sprintf("the first listing of source %s since the start lacks %s; they are kept until %s", source, f.lack(cause, one), cfg.Terms(source)),
			had:    one.stock.endpoints,
		}
	}
}

// lack describes how much is held for a cause.
func (f *baselineState) lack(cause model.Ref, one *hold) string {
	switch {
	case cause != (model.Ref{}):
		object := describe(cause)
		for ref := range one.objects {
			for _, m := range f.missing {
				if head(m.Record) == ref {
					object = m.object
					break
				}
			}
		}
		return fmt.Sprintf("all %d endpoints of %s", one.stock.endpoints, object)
	case one.stock.endpoints == 0:
		return fmt.Sprintf("all %d objects %s", len(one.objects), f.where)
	}
	return fmt.Sprintf("%d of the %d endpoints %s", one.stock.endpoints, f.had.endpoints, f.where)
}

// look counts a listing that lacks the held records, and the begin of new holds. A
// drop that is missing for long enough does not count for later drops.
func (f *baselineState) look(cfg Hold, in facts) {
	maps.DeleteFunc(f.looks, func(key holdKey, _ look) bool { return f.holds.by[key] == nil })
	for key := range f.holds.by {
		l := f.looks[key]
		if in.listing || l.listings == 0 {
			l.clock = l.next(in.now)
		}
		l.lasting = cfg.Confirms(l.listings, l.first, in.now)
		f.looks[key] = l
	}
}

// kept counts the held endpoints, and the ones with a loss that is still suspected.
func (f *baselineState) kept() (endpoints, suspected int) {
	for key, one := range f.holds.by {
		endpoints += one.stock.endpoints
		if !f.looks[key].lasting {
			suspected += one.stock.endpoints
		}
	}
	return endpoints, suspected
}

// judgement returns the judgement for the source's mark.
func (f *baselineState) judgement() model.Judgement {
	j := model.Judgement{Baseline: f.name, With: slices.Sorted(maps.Keys(f.with))}
	items := map[holdKey]map[model.Ref]*model.HeldItem{} // hold → object
	for _, m := range f.missing {
		key, object := f.holds.of(partOf(m.Record)).key(), head(m.Record)
		if items[key] == nil {
			items[key] = map[model.Ref]*model.HeldItem{}
		}
		item := items[key][object]
		if item == nil {
			item = &model.HeldItem{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
			items[key][object] = item
		}
		if m.Kind == model.KindEndpoint {
			item.Endpoints = append(item.Endpoints, m.socket)
		} else {
			item.Whole = true
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(items), holdKey.compare) {
		one := f.holds.by[key]
		drop := model.HeldDrop{Reason: one.reason, Since: one.since, Lasting: f.looks[key].lasting}
		if f.unread {
			drop.Reason += "; no listing confirms it from which something is rejected: see isthmus sources"
		}
		for _, object := range slices.SortedFunc(maps.Keys(items[key]), model.Ref.Compare) {
			item := items[key][object]
			slices.Sort(item.Endpoints)
			drop.Items = append(drop.Items, *item)
		}
		j.Held = append(j.Held, drop)
	}
	slices.SortStableFunc(j.Held, func(a, b model.HeldDrop) int { return cmp.Compare(a.Reason, b.Reason) })
	return j
}
