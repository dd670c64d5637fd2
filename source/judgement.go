package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// explain says why each thing is held, and how far that has come.
func (f *baselineState) explain(source string, cfg Hold, listing bool, now time.Time) {
	maps.DeleteFunc(f.causes, func(cause model.Ref, _ *baselineCause) bool { return f.holds.by[cause] == nil })
	for cause, one := range f.holds.by {
		c := f.causes[cause]
		if c == nil {
			c = &baselineCause{since: now.UTC().Round(0)}
			f.causes[cause] = c
		}
		if one.stock.stored > c.records {
			c.reason = fmt.Sprintf("the first listing of source %s since the start lacks %s; it is kept until %s",
				source, f.lack(cause, one), cfg.Terms(source))
		}
		switch {
		case one.stock.stored != c.records:
			c.equal, c.alike = 1, now
		case listing:
			c.equal++
		}
		c.records, c.lasting = one.stock.stored, cfg.Confirms(c.equal, c.alike, now)
	}
}

// lack says how much is held for a cause.
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

// kept counts the endpoints that are held, and those whose loss is still suspected.
func (f *baselineState) kept() (endpoints, suspected int) {
	for cause, one := range f.holds.by {
		endpoints += one.stock.endpoints
		if !f.causes[cause].lasting {
			suspected += one.stock.endpoints
		}
	}
	return endpoints, suspected
}

// judgement is what was decided.
func (f *baselineState) judgement() model.Judgement {
	j := model.Judgement{Baseline: f.name, With: slices.Sorted(maps.Keys(f.with))}
	items := map[model.Ref]map[model.Ref]*model.HeldItem{} // cause → object
	for _, m := range f.missing {
		cause, object := f.holds.of(partOf(m.Record)).cause, head(m.Record)
		if items[cause] == nil {
			items[cause] = map[model.Ref]*model.HeldItem{}
		}
		item := items[cause][object]
		if item == nil {
			item = &model.HeldItem{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
			items[cause][object] = item
		}
		if m.Kind == model.KindEndpoint {
			item.Endpoints = append(item.Endpoints, m.socket)
		} else {
			item.Whole = true
		}
	}
	for _, cause := range slices.SortedFunc(maps.Keys(items), model.Ref.Compare) {
		c := f.causes[cause]
		drop := model.HeldDrop{Reason: c.reason, Since: c.since, Lasting: c.lasting}
		if f.unread {
			drop.Reason += "; no listing confirms it from which something is rejected: see isthmus sources"
		}
		for _, object := range slices.SortedFunc(maps.Keys(items[cause]), model.Ref.Compare) {
			item := items[cause][object]
			slices.Sort(item.Endpoints)
			drop.Items = append(drop.Items, *item)
		}
		j.Held = append(j.Held, drop)
	}
	slices.SortStableFunc(j.Held, func(a, b model.HeldDrop) int { return cmp.Compare(a.Reason, b.Reason) })
	return j
}
