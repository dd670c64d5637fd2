package hold

import (
	"iter"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// A recaller stores deleted endpoints again, and holds them, once a drop turns out to be
// suspicious. The last to be deleted come first, and for each service no more than it
// lacks beside the held ones. An endpoint reported deleted or replaced does not come
// back, nor does one with a newer endpoint at its address and port.
type recaller struct {
	marks   *marks
	reading *reading.Reading
	stored  map[model.Ref]bool // the records of the source, before this decision
	deleted map[model.Ref]bool // by this decision
	at      addresses
	plan    *Decision
}

func newRecaller(k Known, m *marks, in Listing, p *Decision) *recaller {
	c := &recaller{marks: m, reading: in.Reading, stored: map[model.Ref]bool{}, deleted: map[model.Ref]bool{}, plan: p}
	for rec := range in.Stored {
		c.stored[rec.Ref] = true
	}
	for _, w := range p.Writes {
		c.deleted[w.Record.Ref] = w.Delete
	}
	c.at = addressesOf(k, m, in.Stored, p.Writes)
	return c
}

// recall plans the return of endpoints that were deleted after a time. Cause is the cause
// for which a record of some services is held. Lack is how many endpoints each service
// lacks that are not held.
func (c *recaller) recall(oldest time.Time, cause func(model.Record, []model.Ref) (model.Ref, bool), lack func(service model.Ref) int) {
	lacks, recalled := map[model.Ref]int{}, map[model.Ref]bool{}
	for _, d := range c.marks.newest() {
		by, held := cause(d.record, d.services)
		if !held || d.at.Before(oldest) || !c.mayReturn(d) || !d.counts(lacks, lack) {
			continue
		}
		c.at.put(d.record) // as old as it was
		for _, service := range d.services {
			gone, is := c.marks.gone[service][service]
			if is && service.Kind == model.KindService && !recalled[service] && !c.has(service) {
				recalled[service] = true
				c.restore(gone.record, by)
			}
		}
		c.restore(d.record, by)
	}
}

// mayReturn reports whether an endpoint is not stored, and its owner is, or comes back
// with it; and nothing has replaced it.
func (c *recaller) mayReturn(d departed) bool {
	rec := d.record
	if !index.IsEndpoint(rec.Kind) || c.reading.Removed[d.place] || c.has(rec.Ref) || c.at.taken(d) {
		return false
	}
	if rec.Owner == (model.Ref{}) {
		return true
	}
	_, gone := c.marks.gone[rec.Owner][rec.Owner]
	return gone || c.has(rec.Owner) && !c.deleted[rec.Owner]
}

// has reports whether a record is stored or listed.
func (c *recaller) has(ref model.Ref) bool { return c.reading.Has(ref) || c.stored[ref] }

// restore plans that a deleted record is stored again, and held.
func (c *recaller) restore(rec model.Record, cause model.Ref) {
	rec.UID, rec.Revision, rec.Generation, rec.Status = model.UID{}, 0, 0, model.Status{}
	is := index.PartOf(rec)
	c.plan.Writes = append(c.plan.Writes, model.Write{Record: rec})
	c.plan.Held, c.plan.Lacked = append(c.plan.Held, Caused{is, cause}), append(c.plan.Lacked, is)
}

// addresses are the sockets of a source's endpoints, each with the newest revision of
// an endpoint there.
type addresses struct {
	services map[model.Ref]model.Service
	newest   map[uint64]uint64
	index    *index.Index
}

const isNew = ^uint64(0) // the revision of an endpoint that is about to be stored

// addressesOf returns the sockets of endpoints as they are after some writes.
func addressesOf(k Known, m *marks, stored iter.Seq[model.Record], writes []model.Write) addresses {
	a := addresses{map[model.Ref]model.Service{}, map[uint64]uint64{}, k.Index}
	after := func(yield func(model.Record) bool) {
		written := make(map[model.Ref]bool, len(writes))
		for _, w := range writes {
			written[w.Record.Ref] = true
		}
		for rec := range stored {
			if !written[rec.Ref] && !yield(rec) {
				return
			}
		}
		for _, w := range writes {
			rec := w.Record
			rec.Revision = isNew
			if !w.Delete && !yield(rec) {
				return
			}
		}
	}
	for object, records := range m.gone {
		a.services[object], _ = records[object].record.Spec.(model.Service)
	}
	for rec := range after {
		if rec.Kind == model.KindService {
			a.services[rec.Ref], _ = rec.Spec.(model.Service)
		}
	}
	for rec := range after {
		if index.IsEndpoint(rec.Kind) {
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
	for _, service := range a.index.ServicesOf(rec) {
		for socket := range index.SocketsOf(a.services[service], endpoint) {
			sockets[socket] = true
		}
	}
	return sockets
}
