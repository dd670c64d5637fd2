package baseline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// loss counts the records that are held for a cause.
type loss struct {
	stock   index.Stock
	objects map[model.Ref]bool
}

// explain adds the reasons for a plan's holds.
func (f *state) explain(name string, cfg hold.Config, p *hold.Decision) {
	held := map[model.Ref]*loss{}
	for _, c := range p.Held {
		one := held[c.Cause]
		if one == nil {
			one = &loss{objects: map[model.Ref]bool{}}
			held[c.Cause] = one
		}
		one.stock.Add(c.Ref, +1)
		one.objects[c.Object] = true
	}
	for cause, one := range held {
		p.Terms[cause] = hold.Terms{
			Reason: fmt.Sprintf("the first listing of source %s since the start lacks %s; they are kept until %s", name, f.lack(cause, one), cfg.Terms(name)),
			Had:    one.stock.Endpoints,
		}
	}
}

// lack describes how much is held for a cause.
func (f *state) lack(cause model.Ref, one *loss) string {
	switch {
	case cause != (model.Ref{}):
		object := reading.Describe(cause)
		for ref := range one.objects {
			for _, m := range f.missing {
				if index.Head(m.Record) == ref {
					object = m.object
					break
				}
			}
		}
		return fmt.Sprintf("all %d endpoints of %s", one.stock.Endpoints, object)
	case one.stock.Endpoints == 0:
		return fmt.Sprintf("all %d objects %s", len(one.objects), f.where)
	}
	return fmt.Sprintf("%d of the %d endpoints %s", one.stock.Endpoints, f.had.Endpoints, f.where)
}

// look counts a listing that lacks the held records, and the begin of new holds. A
// drop that is missing for long enough does not count for later drops.
func (f *state) look(cfg hold.Config, in Facts) {
	maps.DeleteFunc(f.looks, func(key hold.Key, _ look) bool { return f.holds.Get(key) == nil })
	for key := range f.holds.All() {
		l := f.looks[key]
		if in.Listing || l.Listings == 0 {
			l.Clock = l.Next(in.Now)
		}
		l.lasting = cfg.Confirms(l.Listings, l.First, in.Now)
		f.looks[key] = l
	}
}

// kept counts the held endpoints, and the ones with a loss that is still suspected.
func (f *state) kept() (endpoints, suspected int) {
	for key, one := range f.holds.All() {
		endpoints += one.Stock.Endpoints
		if !f.looks[key].lasting {
			suspected += one.Stock.Endpoints
		}
	}
	return endpoints, suspected
}

// judgement returns the judgement for the source's mark.
func (f *state) judgement() model.Judgement {
	j := model.Judgement{Baseline: f.name, With: slices.Sorted(maps.Keys(f.with))}
	items := map[hold.Key]map[model.Ref]*model.HeldItem{} // hold → object
	for _, m := range f.missing {
		key, object := f.holds.Of(index.PartOf(m.Record)).Key(), index.Head(m.Record)
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
	for _, key := range slices.SortedFunc(maps.Keys(items), hold.Key.Compare) {
		one := f.holds.Get(key)
		drop := model.HeldDrop{Reason: one.Reason, Since: one.Since, Lasting: f.looks[key].lasting}
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
