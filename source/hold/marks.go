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
	before map[model.Ref][]mark // by service; falling numbers, the oldest first
	gone   map[model.Ref]map[model.Ref]departed
}

// mark is a number of endpoints that a service listed until a time.
type mark struct {
	until     time.Time
	endpoints int
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

// of returns the mark of a service that lists so many endpoints now.
func (m *marks) of(service model.Ref, listed int) int {
	if before := m.before[service]; len(before) > 0 {
		return max(listed, before[0].endpoints)
	}
	return listed
}

// fell records that a service listed so many endpoints until now, and lists fewer
// from now on. It may be called twice.
func (m *marks) fell(service model.Ref, from int, now time.Time) {
	before := slices.DeleteFunc(m.before[service], func(b mark) bool { return b.endpoints <= from })
	m.before[service] = append(before, mark{now, from})
}

// lower records that endpoints are gone for a reason: the registry reported that, or
// listings have confirmed it. So they are no loss.
func (m *marks) lower(by numbers) {
	for service, n := range by {
		for i := range m.before[service] {
			m.before[service][i].endpoints -= n
		}
	}
}

// note records the numbers that services listed until now, and the deleted records.
func (m *marks) note(falls numbers, departures []departed, now time.Time) {
	for service, from := range falls {
		m.fell(service, from, now)
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
			m.lower(numbers{service: 1})
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
	falls      numbers    // the present numbers of services that will list fewer
	departures []departed // the deleted records that may come back
	explained  numbers    // the endpoints with an end that is explained
	net        numbers    // the endpoints with a new name, which count as if they had always had it
}
