package laws_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// heldHere is why a record is held, and since when listings lack it.
type heldHere struct {
	cause    model.Ref // the zero one is the source as a whole
	listings int
	first    time.Time
}

// marks are what services had lately, and what has gone by silence.
type marks struct {
	peaks map[model.Ref][]peak // by service
	gone  []disappeared
}

// peak is a number of endpoints that a service had until then, beside held ones.
type peak struct {
	until time.Time
	n     int
	held  map[model.Ref]bool // that are held still
}

// without is the peak without an endpoint that has ended for a reason.
func (p peak) without(ref model.Ref) peak {
	if !p.held[ref] {
		p.n--
	}
	delete(p.held, ref)
	return p
}

// disappeared is a service or an endpoint that went by silence.
type disappeared struct {
	ref, object model.Ref
	record      model.Record
	services    []model.Ref
	at          time.Time
}

func newMarks() marks { return marks{peaks: map[model.Ref][]peak{}} }

// servicesOf are the services that an endpoint counts for.
func servicesOf(objects map[model.Ref]object, ref, owner model.Ref, spec model.Spec) (services []model.Ref) {
	if ref.Kind == model.KindEndpoint {
		return []model.Ref{owner}
	}
	workload, is := spec.(model.Workload)
	if !is {
		return nil
	}
	for at, o := range objects {
		s, _ := o.record.Spec.(model.Service)
		if s.WorkloadSelector.Len() > 0 && at.Namespace == ref.Namespace && workload.Endpoint.Labels.Includes(s.WorkloadSelector) {
			services = append(services, at)
		}
	}
	if len(services) == 0 {
		services = []model.Ref{{Kind: model.KindWorkload, Key: model.Key{Namespace: ref.Namespace}}}
	}
	return services
}

// each yields the endpoints of some objects, with the services of others that they
// count for.
func each(objects, by map[model.Ref]object, yield func(ref model.Ref, services []model.Ref)) {
	for ref, o := range objects {
		if weigh(ref) > 0 {
			yield(ref, servicesOf(by, ref, model.Ref{}, o.record.Spec))
		}
		for part, r := range o.owned {
			if weigh(part) > 0 {
				yield(part, servicesOf(by, part, ref, r.Spec))
			}
		}
	}
}

// numbers counts the endpoints of services: those that are not held, and the others.
func (m *mirror) numbers() (listed, held map[model.Ref]int) {
	listed, held = map[model.Ref]int{}, map[model.Ref]int{}
	each(m.objects, m.objects, func(ref model.Ref, services []model.Ref) {
		_, is := m.held[ref]
		for _, service := range services {
			if is {
				held[service]++
			} else {
				listed[service]++
			}
		}
	})
	return listed, held
}

// mark is the most that a service had within the time, if it has so many now.
func (m *mirror) mark(service model.Ref, listed int) int {
	for _, p := range m.peaks[service] {
		listed = max(listed, p.n)
	}
	return listed
}

// end ends an endpoint for a reason, in the marks of its services since some time.
func (m *mirror) end(ref model.Ref, services []model.Ref, until time.Time) {
	for _, service := range services {
		for i, p := range m.peaks[service] {
			if !p.until.After(until) {
				m.peaks[service][i] = p.without(ref)
			}
		}
	}
}

// expire forgets what is too long ago, but not what a service had of which something
// is held.
func (m *mirror) expire() {
	listed, held := m.numbers()
	long := func(at time.Time) bool { return time.Since(at) > m.hold.For }
	for service := range m.peaks {
		m.peaks[service] = slices.DeleteFunc(m.peaks[service], func(p peak) bool {
			return p.n <= listed[service] || held[service] == 0 && long(p.until)
		})
	}
	m.gone = slices.DeleteFunc(m.gone, func(d disappeared) bool { return long(d.at) })
}

// settle has what is present not held any more.
func (m *mirror) settle(present map[model.Ref]bool) {
	for ref := range present {
		for _, list := range m.peaks {
			for _, p := range list {
				delete(p.held, ref)
			}
		}
		delete(m.held, ref)
	}
	m.gone = slices.DeleteFunc(m.gone, func(d disappeared) bool { return present[d.ref] })
}

// report removes what a registry reports to be gone.
func (m *mirror) report(s said, before map[model.Ref]object, missing []model.Ref, present map[model.Ref]bool) {
	each(m.objects, before, func(ref model.Ref, services []model.Ref) {
		if slices.Contains(missing, ref) {
			m.end(ref, services, time.Now())
		}
	})
	m.remove(missing)
	m.gone = slices.DeleteFunc(m.gone, func(d disappeared) bool {
		whole := slices.ContainsFunc(s.objects, func(o model.Object) bool { return o.Record.Ref == d.object })
		is := whole || slices.Contains(s.deleted, d.object) || slices.Contains(s.ownedGone, d.ref) && !present[d.ref]
		if is && weigh(d.ref) > 0 {
			m.end(d.ref, d.services, d.at)
		}
		return is
	})
}

// suspects is what is suspicious about a listing.
type suspects struct {
	whole bool
	alone map[model.Ref]bool
}

// causeOf says for what a record is held that counts for some services.
func (s suspects) causeOf(ref model.Ref, services []model.Ref) (_ model.Ref, held bool) {
	if s.whole {
		return model.Ref{}, true
	}
	for _, service := range append([]model.Ref{ref}, services...) {
		if s.alone[service] {
			return service, true
		}
	}
	return model.Ref{}, false
}

// judge removes what a listing lacks, or holds it.
func (m *mirror) judge(before map[model.Ref]object, missing []model.Ref, present map[model.Ref]bool) {
	now := m.objects
	if m.objects = before; !m.listed {
		listed, held := m.numbers()
		for service, n := range held {
			m.peaks[service] = append(m.peaks[service], peak{time.Now(), listed[service] + n, nil})
		}
	}
	m.expire()
	m.objects = now
	former, moved := m.moved(before, missing)
	missing = slices.DeleteFunc(missing, func(ref model.Ref) bool { return former[ref] })
	maps.Copy(present, former) // as if they had kept their names
	fresh := slices.DeleteFunc(slices.Clone(missing), func(ref model.Ref) bool { _, held := m.held[ref]; return held })
	had, has, of := map[model.Ref]int{}, map[model.Ref]int{}, map[model.Ref][]model.Ref{}
	each(before, before, func(ref model.Ref, services []model.Ref) {
		for _, service := range services {
			if _, held := m.held[ref]; !held {
				had[service]++
			}
		}
		of[ref] = services
	})
	was := maps.Clone(of)
	each(m.objects, before, func(ref model.Ref, services []model.Ref) {
		if of[ref] == nil {
			of[ref] = services
		}
		_, held := m.held[ref]
		for _, service := range of[ref] {
			if !slices.Contains(missing, ref) && !moved[ref] && (!held || present[ref]) {
				has[service]++
			}
		}
	})
	s := m.suspect(before, fresh, present, had, has, was)
	m.fall(fresh, had, has, of)
	for ref := range former { // as if each renamed endpoint had always had its new name
		if weigh(ref) > 0 {
			m.end(ref, of[ref], time.Now())
		}
		for _, service := range of[ref] {
			has[service] -= weigh(ref)
		}
	}
	for ref := range moved {
		for _, service := range of[ref] {
			has[service] += weigh(ref)
			for i := range m.peaks[service] {
				m.peaks[service][i].n += weigh(ref)
			}
		}
	}
	m.settle(present)
	m.remove(slices.Collect(maps.Keys(former)))
	m.decide(s, missing, fresh, has, of)
	m.expire()
	m.trim()
}

// fall notes the numbers of services that have fewer from now on, beside their held endpoints.
func (m *mirror) fall(fresh []model.Ref, had, has map[model.Ref]int, of map[model.Ref][]model.Ref) {
	for _, ref := range fresh {
		for _, service := range of[ref] {
			if has[service] >= had[service] {
				continue
			}
			held := map[model.Ref]bool{}
			for one := range m.held {
				if weigh(one) > 0 && slices.Contains(of[one], service) {
					held[one] = true
				}
			}
			m.peaks[service] = append(m.peaks[service], peak{time.Now(), had[service], held})
		}
	}
}

// suspect judges a listing.
func (m *mirror) suspect(before map[model.Ref]object, fresh []model.Ref, present map[model.Ref]bool, had, has map[model.Ref]int, was map[model.Ref][]model.Ref) suspects {
	s := suspects{alone: map[model.Ref]bool{}}
	if len(fresh) == 0 {
		return s
	}
	services := map[model.Ref]bool{}
	for service := range had {
		services[service] = true
	}
	for service := range m.peaks {
		services[service] = true
	}
	lost, all := m.suspected, 0
	for service := range services {
		mark := m.mark(service, had[service])
		lost += max(0, mark-has[service])
		all += mark
	}
	s.whole = lost > 0 && lost >= m.hold.Min && float64(lost) >= m.hold.Share*float64(all+m.suspected)
	s.whole = m.hold.Share < 1 && (s.whole || m.nothing(before, fresh, present, all))
	for _, ref := range fresh {
		for _, service := range append([]model.Ref{ref}, was[ref]...) {
			if service.Kind == model.KindService && has[service] == 0 && m.mark(service, had[service]) > m.hold.Min {
				s.alone[service] = true
			}
		}
	}
	return s
}

// nothing reports whether a listing leaves nothing of what was stored before, be it
// little: no record at all; no endpoint, not even a new one; or no service where there
// was no endpoint; or none of many endpoints.
func (m *mirror) nothing(before map[model.Ref]object, fresh []model.Ref, present map[model.Ref]bool, endpoints int) bool {
	old, oldEndpoints, left, services, hadServices, lost := 0, 0, 0, 0, false, 0
	stored := map[model.Ref]bool{}
	for ref, o := range before {
		for _, part := range o.parts(ref) {
			stored[part] = true
			hadServices = hadServices || part.Kind == model.KindService
		}
	}
	for _, ref := range fresh {
		lost += weigh(ref)
	}
	for ref, o := range m.objects {
		for _, part := range o.parts(ref) {
			if _, held := m.held[part]; held && !present[part] || slices.Contains(fresh, part) {
				continue
			}
			left += weigh(part)
			services += btoi(part.Kind == model.KindService)
			if stored[part] {
				old++
				oldEndpoints += weigh(part)
			}
		}
	}
	switch {
	case old == 0, oldEndpoints == 0 && lost > m.hold.Min:
		return true
	case endpoints > 0:
		return left == 0
	}
	return hadServices && services == 0 && left == 0
}

// decide holds what is missing and suspicious, and removes the rest, and what listings
// have confirmed.
func (m *mirror) decide(s suspects, missing, fresh []model.Ref, has map[model.Ref]int, of map[model.Ref][]model.Ref) {
	begin, end := map[model.Ref]model.Ref{}, map[model.Ref]bool{}
	for _, ref := range missing {
		h, held := m.held[ref]
		if !held {
			if cause, is := s.causeOf(ref, of[ref]); is {
				begin[ref] = cause
			}
			continue
		}
		if h.listings++; h.listings == 1 {
			h.first = time.Now()
		}
		m.held[ref] = h
		end[ref] = h.listings >= 3 && time.Since(h.first) >= m.hold.For
	}
	m.stayWhole(missing, begin, end)
	for ref, is := range end {
		if is {
			m.end(ref, of[ref], time.Now())
		}
	}
	var goes []model.Ref
	for object, o := range m.objects {
		for _, ref := range o.parts(object) {
			cause, holds := begin[ref]
			switch {
			case holds:
				m.held[ref] = heldHere{cause, 1, time.Now()}
			case end[ref]:
				goes = append(goes, ref)
			case slices.Contains(fresh, ref):
				goes = append(goes, ref)
				d := disappeared{ref, object, o.record, of[ref], time.Now()}
				if ref != object {
					d.record = o.owned[ref]
				}
				if weigh(ref) > 0 || ref.Kind == model.KindService {
					m.gone = append(m.gone, d)
				}
			}
		}
	}
	m.remove(goes)
	m.recall(s, m.lacking(has, of))
}

// stayWhole has a missing object stay with all it owns, if anything of it stays that is
// missing.
func (m *mirror) stayWhole(missing []model.Ref, begin map[model.Ref]model.Ref, end map[model.Ref]bool) {
	for _, object := range missing {
		o, is := m.objects[object]
		if !is {
			continue
		}
		var stays *model.Ref
		for _, part := range o.parts(object) {
			cause, holds := begin[part]
			if h, held := m.held[part]; held && !end[part] && slices.Contains(missing, part) {
				cause, holds = h.cause, true
			}
			if holds {
				stays = &cause
			}
		}
		if stays == nil {
			continue
		}
		delete(end, object)
		for _, part := range o.parts(object) {
			if _, held := m.held[part]; !held && slices.Contains(missing, part) {
				if _, holds := begin[part]; !holds {
					begin[part] = *stays
				}
			}
		}
	}
}

func (m *mirror) newest() []disappeared {
	return slices.SortedFunc(slices.Values(m.gone), func(a, b disappeared) int {
		return cmp.Or(b.at.Compare(a.at), a.ref.Compare(b.ref))
	})
}

// lacks says how many endpoints services have lost that are not held.
func (m *mirror) lacks() map[model.Ref]int {
	listed, held := m.numbers()
	lacks := map[model.Ref]int{}
	for service := range m.peaks {
		lacks[service] = m.lost(service, listed[service], held[service])
	}
	return lacks
}

// lost is how many endpoints a service has lost, if so many are listed and held.
func (m *mirror) lost(service model.Ref, listed, held int) (n int) {
	for _, p := range m.peaks[service] {
		n = max(n, p.n+min(len(p.held), held)-listed-held)
	}
	return n
}

// lacking is the same for a listing that is judged. It counts workloads for the services
// that selected them before it, as the suspicion does: a changed selector is an edit, and
// neither a loss nor a gain. Else what comes back would be more or less than was judged to
// be lost.
func (m *mirror) lacking(has map[model.Ref]int, of map[model.Ref][]model.Ref) map[model.Ref]int {
	lacks, held := map[model.Ref]int{}, map[model.Ref]int{}
	for ref := range m.held {
		for _, service := range of[ref] {
			held[service]++
		}
	}
	for service := range m.peaks {
		lacks[service] = m.lost(service, has[service], held[service])
	}
	return lacks
}

// lack takes an endpoint for one of those that its services lack, if they do.
func (d disappeared) lack(lacks map[model.Ref]int) bool {
	lacked := slices.ContainsFunc(d.services, func(service model.Ref) bool { return lacks[service] > 0 })
	for _, service := range d.services {
		lacks[service] -= btoi(lacked)
	}
	return lacked
}

// recall has what went before it was suspicious stored again. Whether another endpoint
// has come to its address since is not known here: where one has the address, it is
// asked whether the record is stored.
func (m *mirror) recall(s suspects, lacks map[model.Ref]int) {
	for _, d := range m.newest() {
		cause, held := s.causeOf(model.Ref{}, d.services)
		_, stored := m.records()[d.ref]
		if !held || stored || weigh(d.ref) == 0 || m.sharesAddress(d) && !m.isStored(d.ref) {
			continue
		}
		restore := func(ref model.Ref) bool {
			at := slices.IndexFunc(m.gone, func(o disappeared) bool { return o.ref == ref })
			if _, there := m.objects[ref]; there || at < 0 {
				return there
			}
			m.objects[ref] = object{m.gone[at].record, map[model.Ref]model.Record{}}
			m.held[ref] = heldHere{cause, 1, time.Now()}
			return true
		}
		if d.object != d.ref && !m.has(d.object) || !d.lack(lacks) {
			continue
		}
		for _, service := range d.services {
			restore(service)
		}
		if d.object == d.ref {
			restore(d.ref)
		} else {
			m.objects[d.object].owned[d.ref] = d.record
			m.held[d.ref] = heldHere{cause, 1, time.Now()}
		}
	}
	m.gone = slices.DeleteFunc(m.gone, func(d disappeared) bool { _, held := m.held[d.ref]; return held })
}

// has reports whether an object is stored, or went by silence.
func (m *mirror) has(ref model.Ref) bool {
	_, is := m.objects[ref]
	return is || slices.ContainsFunc(m.gone, func(d disappeared) bool { return d.ref == ref })
}

func addressOf(spec model.Spec) string {
	if workload, is := spec.(model.Workload); is {
		return workload.Endpoint.Address
	}
	endpoint, _ := spec.(model.Endpoint)
	return endpoint.Address
}

func (m *mirror) sharesAddress(d disappeared) bool {
	for ref, r := range m.records() {
		if weigh(ref) > 0 && addressOf(r.Spec) == addressOf(d.record.Spec) {
			return true
		}
	}
	return false
}

// trim forgets what services have made up for.
func (m *mirror) trim() {
	var left []disappeared
	lacks, quota := m.lacks(), m.lacks()
	for _, d := range m.newest() {
		if weigh(d.ref) == 0 && lacks[d.ref] > 0 || weigh(d.ref) > 0 && d.lack(quota) {
			left = append(left, d)
		}
	}
	m.gone = left
}
