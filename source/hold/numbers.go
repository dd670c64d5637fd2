package hold

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Known is the data about a source's present records: the stored and the held ones.
type Known struct {
	Index *index.Index
	Holds *Holds
}

// number counts the listed endpoints of a service, and its held ones.
func (k Known) number(service model.Ref) (listed, held int) {
	if service.Kind == model.KindEndpoint { // stands alone
		held = len(k.Holds.objects[service])
		if _, stored := k.Index.Find(service); stored {
			listed = 1 - held
		}
		return listed, held
	}
	owned := k.Holds.ownedBy(service)
	listed, held = k.Index.Selected(service)
	return k.Index.Owns(service) - owned + listed, owned + held
}

// numbered returns the services for which the endpoints of an object count.
func (k Known) numbered(object model.Ref) []model.Ref {
	if object.Kind == model.KindWorkload {
		return k.Index.ServicesOf(model.Record{Ref: object})
	}
	return []model.Ref{object}
}

// numbers count endpoints by service.
type numbers map[model.Ref]int

// add counts an endpoint for its services, and returns how many these are.
func (to numbers) add(k Known, rec model.Record) (services int) {
	if rec.Kind == model.KindEndpoint {
		to[index.Head(rec)]++
		return 1
	}
	of := k.Index.ServicesOf(rec)
	for _, service := range of {
		to[service]++
	}
	return len(of)
}

// turnover is the change by a listing, in numbers. Held records count as not listed.
type turnover struct {
	missing, reported numbers            // not listed any more, or reported deleted
	ended             ends               // reported deleted, with earlier held or deleted ones
	created, returned numbers            // new, or held until now
	gone              map[model.Ref]bool // services that are missing themselves
	lost              int                // endpoints that are missing, each once
	total             int                // former endpoints of all services, without the ones reported deleted
	services          int                // former services, likewise
	// old counts the remaining records that were stored and listed before, and left
	// counts these with the new ones.
	old, left index.Stock
}

// turnoverOf counts the changes by a reading. Records with a new name count as if they had kept it.
func turnoverOf(k Known, m *marks, r *reading.Reading, d reading.Difference, renamed explanation) turnover {
	x, h := k.Index, k.Holds
	t := turnover{
		missing: numbers{}, reported: numbers{}, ended: ends{}, created: numbers{}, returned: numbers{}, gone: map[model.Ref]bool{},
		total: x.Endpoints() - h.Stock.Endpoints + x.Repeated(), services: x.Services(),
		old: index.Stock{Stored: x.Records() - h.Stock.Stored, Endpoints: x.Endpoints() - h.Stock.Endpoints, Services: x.Services() - h.Stock.Services},
	}
	for _, rec := range d.Missing {
		if !h.Has(index.PartOf(rec)) {
			t.old.Add(rec.Ref, -1)
			t.lost += index.EndpointsIn(rec.Kind)
			t.missing.add(k, rec)
			if rec.Kind == model.KindService {
				t.gone[rec.Ref] = true
			}
		}
	}
	for _, w := range d.Deletes {
		k.end(t.ended, w.Record, false)
		if w.Record.Kind == model.KindService {
			t.services--
		}
		if !h.Has(index.PartOf(w.Record)) {
			t.old.Add(w.Record.Ref, -1)
			t.total -= t.reported.add(k, w.Record)
		}
	}
	for gone := range m.departed() {
		for _, service := range gone.services {
			if r.Removed[gone.place] {
				t.ended.add(service, end{since: gone.at.UnixNano()}, 1)
			}
		}
	}
	for _, p := range d.Returned {
		t.old.Add(p.Ref, +1)
		t.returned.add(k, p.Record())
	}
	for _, rec := range renamed.explained {
		if h.Has(index.PartOf(rec)) {
			t.old.Add(rec.Ref, +1)
			t.returned.add(k, rec)
		}
	}
	for i, rec := range r.Records {
		if d.Survived[i] && !h.Empty() && h.Has(index.PartOf(rec)) {
			t.old.Add(rec.Ref, +1)
			t.returned.add(k, rec)
		}
	}
	t.left = t.old
	for i, rec := range r.Records {
		if !d.Survived[i] {
			t.left.Add(rec.Ref, +1)
			if !renamed.by[rec.Ref] {
				t.created.add(k, rec)
			}
		}
	}
	return t
}

// fallOf returns the loss of the source by a listing.
func fallOf(k Known, m *marks, t turnover, suspected int, edited bool) Fall {
	f := Fall{Services: map[model.Ref]Number{}, Suspected: suspected, Total: t.total}
	judge := func(service model.Ref) {
		if _, done := f.Services[service]; done {
			return
		}
		listed, _ := k.number(service)
		had := listed - t.reported[service]
		n := Number{
			Mark:  m.of(service, had, t.ended[service]),
			Now:   had - t.missing[service] + t.created[service] + t.returned[service],
			Lacks: t.missing[service] > 0 || t.gone[service],
		}
		f.Services[service] = n
		f.Total += n.Mark - had
	}
	for service := range t.missing {
		judge(service)
	}
	for service := range t.gone {
		judge(service)
	}
	for service := range m.before {
		judge(service)
	}
	switch {
	case t.old.Stored == 0:
		f.Nothing = true
	case f.Total > 0:
		f.Nothing = t.left.Endpoints == 0
	default:
		f.Nothing = t.services > 0 && t.left.Services == 0 && t.left.Endpoints == 0
	}
	if t.old.Endpoints == 0 && !edited {
		f.Replaced = t.lost
	}
	return f
}

// fallsOf returns the present numbers of services that will list fewer. The ends of the same
// listing are not taken from these yet.
func fallsOf(k Known, t turnover, now time.Time) map[model.Ref]mark {
	falls := map[model.Ref]mark{}
	for service, missing := range t.missing {
		if missing > t.created[service]+t.returned[service] {
			listed, held := k.number(service)
			falls[service] = mark{until: now, endpoints: listed, held: held}
		}
	}
	return falls
}

// endsOf counts the endpoints with an end that the registry has reported, or listings have
// confirmed, which are no loss any more, and the held ones that are listed again.
func endsOf(k Known, d reading.Difference, p Decision) ends {
	by := ends{}
	for _, w := range d.Deletes {
		k.end(by, w.Record, false)
	}
	for _, is := range p.confirmed {
		k.end(by, is.Record(), false)
	}
	for _, is := range p.back {
		k.end(by, is.Record(), true)
	}
	return by
}

// end counts the end of an endpoint for its services. One that is back has been held.
func (k Known) end(by ends, rec model.Record, back bool) {
	one := end{back: back}
	if was := k.Holds.Of(index.PartOf(rec)); was.Hold != nil {
		one.since, one.held = was.Since.UnixNano(), true
	}
	for _, service := range k.Index.ServicesOf(rec) {
		by.add(service, one, 1)
	}
}
