package hold

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// marks store the numbers of services within Config.For, so that a drop that comes in
// waves is judged as one. They are only in memory: in a new process the restored
// number is the mark.
//
// Only a loss costs memory. A service has marks only while it lists fewer endpoints
// than before. Its kept deleted endpoints are at most as many as it has lost.
type marks struct {
	before map[model.Ref][]mark // by service, the oldest first
	gone   map[model.Ref]map[model.Ref]departed
}

// mark is a number of endpoints that a service listed until a time. Held endpoints are not
// among these, but for the mark that a process begins with.
type mark struct {
	until     time.Time // when the listing came that has fewer
	endpoints int
	held      int  // endpoints that were held then, and still are
	all       bool // it counts the held endpoints, too
}

// end is the end of an endpoint for a reason, or of its hold.
type end struct {
	since int64 // the listing that lacked it first, in nanoseconds since 1970; 0 for a listed one
	held  bool  // since then, until now
	back  bool  // it is listed again
}

// ends count the ends of the endpoints of each service.
type ends map[model.Ref]map[end]int

// add counts n endpoints of a service.
func (to ends) add(service model.Ref, e end, n int) {
	if to[service] == nil {
		to[service] = map[end]int{}
	}
	to[service][e] += n
}

// held counts the endpoints of a service with a hold that ends.
func (to ends) held(service model.Ref) (n int) {
	for e, count := range to[service] {
		if e.held {
			n += count
		}
	}
	return n
}

// after returns the mark after some ends. It never counted an endpoint that was lacking before.
func (b mark) after(ends map[end]int) mark {
	for e, n := range ends {
		switch {
		case b.all || e.since == 0 || e.since >= b.until.UnixNano():
			if !e.back {
				b.endpoints -= n
			}
		case e.held:
			b.held -= n
		}
	}
	return b
}

// departed is a record that was deleted because a listing lacked it, without having
// been held. The marks keep endpoints, and services for the sake of these.
type departed struct {
	record   model.Record
	place    string      // of its object
	services []model.Ref // for which it counts
	at       time.Time
	revision uint64 // of the store, before the record was deleted
}

func newMarks() *marks {
	return &marks{before: map[model.Ref][]mark{}, gone: map[model.Ref]map[model.Ref]departed{}}
}

// of returns the mark of a service that lists so many endpoints now, after some ends.
func (m *marks) of(service model.Ref, listed int, ends map[end]int) int {
	for _, b := range m.before[service] {
		listed = max(listed, b.after(ends).endpoints)
	}
	return listed
}

// lacks returns how many endpoints a service has lost that are not held. So many are listed
// and held after some ends.
func (m *marks) lacks(service model.Ref, listed, held int, ends map[end]int) (n int) {
	for _, b := range m.before[service] {
		b = b.after(ends)
		n = max(n, b.endpoints+min(b.held, held)-listed-held)
	}
	return n
}

// fell records a mark of a service that lists fewer endpoints from now on. It may be
// called twice.
func (m *marks) fell(service model.Ref, from mark) {
	before := slices.DeleteFunc(m.before[service], func(b mark) bool { return b.endpoints <= from.endpoints })
	m.before[service] = append(before, from)
}

// lower records ends: the registry reported them, or listings have confirmed them. So they
// are no loss.
func (m *marks) lower(by ends) {
	for service, list := range by {
		for i, b := range m.before[service] {
			m.before[service][i] = b.after(list)
		}
	}
}

// note records the marks of services that list fewer from now on, and the deleted records.
func (m *marks) note(falls map[model.Ref]mark, departures []departed) {
	for service, from := range falls {
		m.fell(service, from)
	}
	for _, d := range departures {
		m.depart(d)
	}
}

// depart keeps a deleted record.
func (m *marks) depart(d departed) {
	object := index.Head(d.record)
	if m.gone[object] == nil {
		m.gone[object] = map[model.Ref]departed{}
	}
	m.gone[object][d.record.Ref] = d
}

// returned drops a kept record that is stored again.
func (m *marks) returned(p index.Part) {
	if delete(m.gone[p.Object], p.Ref); len(m.gone[p.Object]) == 0 {
		delete(m.gone, p.Object)
	}
}

// forget drops the kept records of an object, or one of them. The registry has
// reported that they are gone.
func (m *marks) forget(object model.Ref, only ...model.Ref) {
	for ref, d := range m.gone[object] {
		if len(only) > 0 && !slices.Contains(only, ref) {
			continue
		}
		for _, service := range d.services {
			m.lower(ends{service: {{since: d.at.UnixNano()}: 1}})
		}
		m.returned(index.Part{Ref: ref, Object: object})
	}
}

// expire drops the marks that are older than a time or no higher than the listed
// number. The marks of a service stay while any of its endpoints is held. Otherwise a
// registry that lists other records each time would have lost none after a while.
func (m *marks) expire(oldest time.Time, number func(model.Ref) (listed, held int)) {
	for service, before := range m.before {
		listed, held := number(service)
		before = slices.DeleteFunc(before, func(b mark) bool {
			return b.endpoints <= listed || held == 0 && b.until.Before(oldest)
		})
		if len(before) == 0 {
			delete(m.before, service)
		} else {
			m.before[service] = before
		}
	}
}

// keep drops the kept records that departed before a time, and the ones that their services
// have made up for. Quota is how many endpoints each service lacks that are not held.
func (m *marks) keep(oldest time.Time, quota func(service model.Ref) int) {
	if len(m.gone) == 0 {
		return
	}
	all, lacks := m.newest(), map[model.Ref]int{}
	clear(m.gone)
	for _, d := range all {
		if d.at.Before(oldest) {
			continue
		}
		if !index.IsEndpoint(d.record.Kind) {
			if quota(d.record.Ref) > 0 {
				m.depart(d)
			}
		} else if d.counts(lacks, quota) {
			m.depart(d)
		}
	}
}

// counts reports whether a service lacks the endpoint, and counts it for all services
// that it served.
func (d departed) counts(lacks map[model.Ref]int, quota func(model.Ref) int) (lacked bool) {
	for _, service := range d.services {
		if _, known := lacks[service]; !known {
			lacks[service] = quota(service)
		}
		lacked = lacked || lacks[service] > 0
	}
	for _, service := range d.services {
		if lacked {
			lacks[service]--
		}
	}
	return lacked
}

// departed yields the kept records.
func (m *marks) departed() iter.Seq[departed] {
	return func(yield func(departed) bool) {
		for _, records := range m.gone {
			for _, d := range records {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// newest returns the kept records, the last to depart first.
func (m *marks) newest() []departed {
	return slices.SortedFunc(m.departed(), func(a, b departed) int {
		return cmp.Or(b.at.Compare(a.at), a.record.Compare(b.record.Ref))
	})
}

// named drops the kept records that a reading names: they are stored again, or
// reported to be gone.
func (m *marks) named(r *reading.Reading) {
	if len(m.gone) == 0 {
		return
	}
	for _, rec := range r.Records {
		m.returned(index.PartOf(rec))
	}
	for object := range r.Deleted {
		m.forget(object)
	}
	for ref := range r.Dropped {
		for i, c := range ref.Name {
			if c == '/' {
				owner := ref
				owner.Kind, owner.Name = model.KindService, ref.Name[:i]
				m.forget(owner, ref)
			}
		}
	}
	if !r.Lists() { // each object is reported as it is
		for _, object := range r.Objects {
			m.forget(object)
		}
	}
	for gone := range m.departed() {
		if r.Removed[gone.place] {
			m.forget(index.Head(gone.record), gone.record.Ref)
		}
	}
}

// losses are the changes of the marks by a decision.
type losses struct {
	falls      map[model.Ref]mark // the present numbers of services that will list fewer
	departures []departed         // the deleted records that may come back
	ends       ends               // the endpoints that end for a reason, or are held no more
}
