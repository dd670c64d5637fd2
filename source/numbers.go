package source

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// services returns the services that an endpoint counts for: its owner, or the
// services that select it. An endpoint that stands alone is a service of its own.
func (s *Supervisor) services(rec model.Record) []model.Ref {
	switch rec.Kind {
	case model.KindEndpoint:
		return []model.Ref{head(rec)}
	case model.KindWorkload:
		if w := s.index.selections.workloads[rec.Ref]; w != nil {
			return w.services
		}
		spec, _ := rec.Spec.(model.Workload)
		return s.index.selections.of(rec.Namespace, spec.Endpoint.Labels)
	default:
		return nil
	}
}

// number counts the listed endpoints of a service, and its held ones.
func (s *Supervisor) number(service model.Ref) (listed, held int) {
	if service.Kind == model.KindEndpoint { // stands alone
		held = len(s.holds.objects[service])
		if _, stored := s.index.stands[service]; stored {
			listed = 1 - held
		}
		return listed, held
	}
	held, selected := s.holds.ownedBy(service), s.index.selections
	return s.index.owns(service) - held + selected.listed[service], held + selected.held[service]
}

// numbers count endpoints by service.
type numbers map[model.Ref]int

func (s *Supervisor) add(to numbers, rec model.Record) (services int) {
	if rec.Kind == model.KindEndpoint {
		to[head(rec)]++
		return 1
	}
	of := s.services(rec)
	for _, service := range of {
		to[service]++
	}
	return len(of)
}

// turnover is the change by a listing, in numbers. Held records count as not listed.
type turnover struct {
	missing, reported numbers            // not listed any more, or reported deleted
	ended             numbers            // reported deleted, with earlier held or deleted ones
	created, returned numbers            // new, or held until now
	gone              map[model.Ref]bool // services that are missing themselves
	lost              int                // endpoints that are missing, each once
	total             int                // former endpoints of all services, without the ones reported deleted
	// old counts the remaining records that were stored and listed before, and left
	// counts these with the new ones.
	old, left stock
}

// turnover counts the changes by a reading.
func (k *sink) turnover(r *reading, d difference) turnover {
	x, h := k.index, k.holds
	t := turnover{
		missing: numbers{}, reported: numbers{}, ended: numbers{}, created: numbers{}, returned: numbers{}, gone: map[model.Ref]bool{},
		total: x.endpoints() - h.stock.endpoints + x.selections.repeated,
		old:   stock{x.records() - h.stock.stored, x.endpoints() - h.stock.endpoints, x.services() - h.stock.services},
	}
	for _, rec := range d.Missing {
		if !h.has(partOf(rec)) {
			t.old.add(rec.Ref, -1)
			t.lost += endpointsIn(rec.Kind)
			k.add(t.missing, rec)
			if rec.Kind == model.KindService {
				t.gone[rec.Ref] = true
			}
		}
	}
	for _, w := range d.Deletes {
		k.add(t.ended, w.Record)
		if !h.has(partOf(w.Record)) {
			t.old.add(w.Record.Ref, -1)
			t.total -= k.add(t.reported, w.Record)
		}
	}
	for gone := range k.marks.departed() {
		for _, service := range gone.services {
			if r.removed[gone.place] {
				t.ended[service]++
			}
		}
	}
	for _, p := range d.Returned {
		t.old.add(p.ref, +1)
		k.add(t.returned, p.record())
	}
	for i, rec := range r.records {
		if d.Survived[i] && !h.empty() && h.has(partOf(rec)) {
			t.old.add(rec.Ref, +1)
			k.add(t.returned, rec)
		}
	}
	t.left = t.old
	for i, rec := range r.records {
		if !d.Survived[i] {
			t.left.add(rec.Ref, +1)
			k.add(t.created, rec)
		}
	}
	return t
}

// record returns a record of that reference and owner, without contents.
func (p part) record() model.Record {
	rec := model.Record{Ref: p.ref}
	if p.ref != p.object {
		rec.Owner = p.object
	}
	return rec
}

// fall returns the loss of the source by a listing.
func (k *sink) fall(t turnover) fall {
	_, suspected := k.kept()
	f := fall{services: map[model.Ref]number{}, suspected: suspected, total: t.total}
	judge := func(service model.Ref) {
		if _, done := f.services[service]; done {
			return
		}
		listed, _ := k.number(service)
		had := listed - t.reported[service]
		n := number{
			mark:  max(had, k.marks.of(service, listed)-t.ended[service]),
			now:   had - t.missing[service] + t.created[service] + t.returned[service],
			lacks: t.missing[service] > 0 || t.gone[service],
		}
		f.services[service] = n
		f.total += n.mark - had
	}
	for service := range t.missing {
		judge(service)
	}
	for service := range t.gone {
		judge(service)
	}
	for service := range k.marks.before {
		judge(service)
	}
	switch {
	case t.old.stored == 0:
		f.nothing = true
	case f.total > 0:
		f.nothing = t.left.endpoints == 0
	default:
		f.nothing = k.index.services() > 0 && t.left.services == 0 && t.left.endpoints == 0
	}
	if t.old.endpoints == 0 && !k.cfg.Edited {
		f.replaced = t.lost
	}
	return f
}

// begin updates the numbers before a listing is judged. The first listing of a
// process is compared with all restored records, the held endpoints included.
func (k *sink) begin(now time.Time) {
	k.index.selections.settle()
	if !k.listed {
		for object := range k.holds.objects {
			for _, service := range k.numbered(object) {
				if listed, held := k.number(service); held > 0 {
					k.marks.fell(service, listed+held, now)
				}
			}
		}
	}
	k.marks.expire(now.Add(-k.cfg.Hold.For), k.number)
}

// numbered returns the services for which the endpoints of an object count.
func (s *Supervisor) numbered(object model.Ref) []model.Ref {
	if object.Kind == model.KindWorkload {
		return s.services(model.Record{Ref: object})
	}
	return []model.Ref{object}
}

// falls returns the present numbers of services that will list fewer.
func (k *sink) falls(t turnover) numbers {
	n := numbers{}
	for service, missing := range t.missing {
		if missing > t.created[service]+t.returned[service] {
			listed, _ := k.number(service)
			n[service] = listed - t.reported[service]
		}
	}
	return n
}

// departures returns the records that are deleted because a listing lacks them, if
// they may come back.
func (k *sink) departures(deleted []model.Record, now time.Time) (list []departed) {
	revision := k.store.Revision()
	for _, rec := range deleted {
		if isEndpoint(rec.Kind) || rec.Kind == model.KindService {
			list = append(list, departed{rec, k.index.stands[head(rec)].place, k.services(rec), now, revision})
		}
	}
	return list
}

// explained counts the endpoints with an end that the registry has reported, or
// listings have confirmed. They are no loss any more.
func (k *sink) explained(d difference, p plan) numbers {
	if len(k.marks.before) == 0 {
		return nil
	}
	n := numbers{}
	for _, w := range d.Deletes {
		k.add(n, w.Record)
	}
	for _, is := range p.confirmed {
		k.add(n, is.record())
	}
	return n
}

// remember records the losses of a reading that is stored now, and drops marks
// without a reason any more.
func (k *sink) remember(r *reading, p plan, now time.Time) {
	for service, n := range p.explained {
		k.marks.lower(service, n)
	}
	k.forget(r)
	for _, c := range p.held {
		k.marks.returned(c.part)
	}
	k.marks.note(p.falls, p.departures, now)
	if !r.lists() {
		return
	}
	k.index.selections.settle()
	oldest := now.Add(-k.cfg.Hold.For)
	k.marks.expire(oldest, k.number)
	k.marks.keep(oldest, func(service model.Ref) int {
		listed, held := k.number(service)
		return k.marks.of(service, listed) - listed - held
	})
}

// forget drops the kept records that a reading names: they are stored again, or
// reported to be gone.
func (k *sink) forget(r *reading) {
	if len(k.marks.gone) == 0 {
		return
	}
	for _, rec := range r.records {
		k.marks.returned(partOf(rec))
	}
	for object := range r.deleted {
		k.marks.forget(object)
	}
	for ref := range r.dropped {
		for i, c := range ref.Name {
			if c == '/' {
				owner := ref
				owner.Kind, owner.Name = model.KindService, ref.Name[:i]
				k.marks.forget(owner, ref)
			}
		}
	}
	if !r.lists() { // each object is reported as it is
		for _, object := range r.objects {
			k.marks.forget(object)
		}
	}
	for gone := range k.marks.departed() {
		if r.removed[gone.place] {
			k.marks.forget(head(gone.record), gone.record.Ref)
		}
	}
}
