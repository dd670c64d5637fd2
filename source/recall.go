package source

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// recall plans to store deleted endpoints again, and to hold them, once a drop turns
// out to be suspicious. The last to be deleted come first, and for each service no
// more than it lacks beside the held ones. An endpoint reported deleted or replaced
// does not come back, nor does one with a newer endpoint at its address and port.
func (k *sink) recall(r *reading, p *plan, s suspicion, f fall, now time.Time) {
	if len(k.marks.gone) == 0 {
		return
	}
	oldest, lacks := now.Add(-k.cfg.Hold.For), map[model.Ref]int{}
	lack := func(service model.Ref) int {
		_, held := k.number(service)
		return f.services[service].loss() - p.missing[service] - held + p.returned[service]
	}
	at, deleted, recalled := k.addresses(p.writes), map[model.Ref]bool{}, map[model.Ref]bool{}
	for _, w := range p.writes {
		deleted[w.Record.Ref] = w.Delete
	}
	for _, d := range k.marks.newest() {
		cause, held := s.cause(d.record, d.services)
		if !held || !isEndpoint(d.record.Kind) || d.at.Before(oldest) || r.removed[d.place] || !k.mayReturn(r, d.record, deleted) || at.taken(d) || !d.counts(lacks, lack) {
			continue
		}
		at.put(d.record) // as old as it was
		for _, service := range d.services {
			gone, is := k.marks.gone[service][service]
			if is && service.Kind == model.KindService && !recalled[service] && !k.hasStored(r, service) {
				recalled[service] = true
				p.restore(gone.record, cause)
			}
		}
		p.restore(d.record, cause)
	}
}

// mayReturn reports whether a record is not stored, and its owner is, or comes back
// with it.
func (k *sink) mayReturn(r *reading, rec model.Record, deleted map[model.Ref]bool) bool {
	if k.hasStored(r, rec.Ref) {
		return false
	}
	if rec.Owner == (model.Ref{}) {
		return true
	}
	_, gone := k.marks.gone[rec.Owner][rec.Owner]
	return gone || k.hasStored(r, rec.Owner) && !deleted[rec.Owner]
}

// hasStored reports whether a record is stored or listed.
func (k *sink) hasStored(r *reading, ref model.Ref) bool {
	if _, listed := r.at[ref]; listed {
		return true
	}
	_, is := k.find(ref)
	return is
}

// restore plans that a deleted record is stored again, and held.
func (p *plan) restore(rec model.Record, cause model.Ref) {
	rec.UID, rec.Revision, rec.Generation, rec.Status = model.UID{}, 0, 0, model.Status{}
	p.writes = append(p.writes, model.Write{Record: rec})
	p.held, p.lacked = append(p.held, caused{partOf(rec), cause}), append(p.lacked, partOf(rec))
}

// addresses are the sockets of a source's endpoints, each with the newest revision of
// an endpoint there.
type addresses struct {
	services map[model.Ref]model.Service
	newest   map[uint64]uint64
	of       func(model.Record) []model.Ref
}

const isNew = ^uint64(0) // the revision of an endpoint that is about to be stored

// addresses returns the sockets of endpoints as they are after some writes.
func (k *sink) addresses(writes []model.Write) addresses {
	a := addresses{map[model.Ref]model.Service{}, map[uint64]uint64{}, k.services}
	stored := overlay(k.store, writes)
	for object, records := range k.marks.gone {
		a.services[object], _ = records[object].record.Spec.(model.Service)
	}
	for rec := range stored.List(model.Filter{Kind: model.KindService, Source: k.name}) {
		a.services[rec.Ref], _ = rec.Spec.(model.Service)
	}
	written := make(map[model.Ref]bool, len(writes))
	for _, w := range writes {
		written[w.Record.Ref] = true
	}
	for _, kind := range []model.Kind{model.KindEndpoint, model.KindWorkload} {
		for rec := range stored.List(model.Filter{Kind: kind, Source: k.name}) {
			if written[rec.Ref] {
				rec.Revision = isNew
			}
			a.put(rec)
		}
	}
	return a
}

func (a addresses) put(rec model.Record) {
	for socket := range a.sockets(rec) {
		a.newest[socket] = max(a.newest[socket], rec.Revision)
	}
}

// taken reports whether an endpoint that has come or changed since then has a socket
// of a deleted one.
func (a addresses) taken(d departed) bool {
	for socket := range a.sockets(d.record) {
		if a.newest[socket] > d.revision {
			return true
		}
	}
	return false
}

// sockets returns the sockets at which an endpoint serves the ports of its services.
func (a addresses) sockets(rec model.Record) map[uint64]bool {
	endpoint, _ := rec.Spec.(model.Endpoint)
	if workload, is := rec.Spec.(model.Workload); is {
		endpoint = workload.Endpoint
	}
	sockets := map[uint64]bool{}
	for _, service := range a.of(rec) {
		for socket := range socketsOf(a.services[service], endpoint) {
			sockets[socket] = true
		}
	}
	return sockets
}
