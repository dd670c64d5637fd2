package supervise_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// reference is what the store must hold, kept the slow and obvious way: the
// last good version of every object, what is held of them, and what services
// had within the time in which losses add up.
type reference struct {
	objects map[model.Ref]lastGood
	marked  bool

	before map[model.Ref]bool     // what was stored before the last reading
	were   map[model.Ref]lastGood // and as which objects
	hold   hold.Config
	edited bool                   // people edit the registry
	held   map[model.Ref]heldHere // objects and endpoints

	peaks   map[model.Ref][]peak // by service
	gone    []goneHere           // deleted without having been held
	first   bool                 // no listing of the process was taken yet
	step    int
	changed map[string]int // the step in which an endpoint was written last
}

type lastGood struct {
	place, host string
	weights     map[string]uint32 // by the name of the owned endpoint
	stale       string
}

// heldHere is why a record is held, and since when listings lack it.
type heldHere struct {
	cause    model.Ref // the zero one is the source
	listings int
	first    time.Time
}

// peak is a number of endpoints that a service had until then, beside held ones.
type peak struct {
	until time.Time
	n     int
	held  map[model.Ref]bool // that are held still
}

// without is the peak without an endpoint that has ended for a reason, or is held no more.
func (p peak) without(ref model.Ref) peak {
	if p.held[ref] {
		p.held = maps.Clone(p.held)
		delete(p.held, ref)
	} else {
		p.n--
	}
	return p
}

// goneHere is a service or an endpoint that went by silence.
type goneHere struct {
	ref, service model.Ref
	place, host  string
	weight       uint32
	at           time.Time
	step         int
}

func newReference(hold hold.Config, edited bool) *reference {
	return &reference{
		objects: map[model.Ref]lastGood{}, hold: hold, edited: edited, held: map[model.Ref]heldHere{},
		peaks: map[model.Ref][]peak{}, first: true, changed: map[string]int{},
	}
}

func (m *reference) replace(l model.Listing) {
	m.step++
	m.marked = m.marked || l.Places == nil
	read := func(place string) bool { return l.Places == nil || slices.Contains(l.Places, place) }
	m.begin()
	m.forget(func(g goneHere) bool { return slices.Contains(l.Removed, g.place) })
	missing, present := m.apply(l.Objects, l.Rejected, func(ref model.Ref, have lastGood) (gone, reported bool) {
		return read(have.place), slices.Contains(l.Removed, have.place)
	}, read, nil)
	m.judge(missing, present)
	m.first = m.first && l.Places != nil
}

func (m *reference) change(c model.Change) {
	m.step++
	rejected := slices.DeleteFunc(slices.Clone(c.Rejected), func(f model.Rejection) bool {
		return f.Ref == (model.Ref{}) && f.Place == "" // says nothing about any record
	})
	missing, present := m.apply(c.Upserts, rejected, func(ref model.Ref, _ lastGood) (gone, reported bool) {
		return slices.Contains(c.Deletes, ref), true
	}, func(string) bool { return false }, c.Deletes)
	m.settle(present)
	m.report(missing...)
	m.forget(func(g goneHere) bool {
		return present[g.service] && m.objects[g.service].stale == "" || slices.Contains(c.Deletes, g.service)
	})
}

// delta applies single endpoints: they end neither that their owner is stale nor
// that it is held.
func (m *reference) delta(c model.Change) {
	m.step++
	present := map[model.Ref]bool{}
	for _, rec := range c.OwnedUpserts {
		if owner, stored := m.objects[rec.Owner]; stored {
			m.weigh(owner, rec.Name, weightOf(rec))
			present[rec.Ref] = true
		}
	}
	m.settle(present)
	listed := func(ref model.Ref) bool { // also with an unknown owner, about which the registry is asked
		return slices.ContainsFunc(c.OwnedUpserts, func(rec model.Record) bool { return rec.Ref == ref })
	}
	m.forget(func(g goneHere) bool { return !listed(g.ref) && slices.Contains(c.OwnedDeletes, g.ref) })
	for _, ref := range c.OwnedDeletes {
		if !present[ref] {
			m.report(ref)
		}
	}
}

// weigh has an object own an endpoint.
func (m *reference) weigh(o lastGood, name string, weight uint32) {
	if old, had := o.weights[name]; !had || old != weight {
		m.changed[name] = m.step
	}
	o.weights[name] = weight
}

// restart has a new process count anew.
func (m *reference) restart() {
	for ref, h := range m.held {
		m.held[ref] = heldHere{cause: h.cause}
	}
	m.peaks, m.gone, m.first = map[model.Ref][]peak{}, nil, true
}

// release lets go of what is held, but for an object of which something is there.
func (m *reference) release() {
	for ref, o := range m.objects {
		if slices.ContainsFunc(o.parts(ref), func(part model.Ref) bool { _, held := m.held[part]; return !held }) {
			delete(m.held, ref)
		}
	}
	if len(m.held) > 0 {
		m.peaks, m.gone = map[model.Ref][]peak{}, nil
	}
	for ref := range m.held {
		m.remove(ref)
	}
}

// numbers counts the endpoints of a service: those that are not held, and the others.
func (m *reference) numbers(service model.Ref) (listed, held int) {
	for name := range m.objects[service].weights {
		if _, is := m.held[endpoint(name)]; is {
			held++
		} else {
			listed++
		}
	}
	return listed, held
}

// end ends an endpoint in the marks of a service.
func (m *reference) end(service, ref model.Ref) {
	for i, p := range m.peaks[service] {
		m.peaks[service][i] = p.without(ref)
	}
}

// mark is the most that a service had within the time, if it has so many now.
func (m *reference) mark(service model.Ref, listed int) int {
	for _, p := range m.peaks[service] {
		listed = max(listed, p.n)
	}
	return listed
}

// begin is what comes before a listing.
func (m *reference) begin() {
	if m.first {
		for service := range m.objects {
			if listed, held := m.numbers(service); held > 0 {
				m.peaks[service] = []peak{{time.Now(), listed + held, nil}}
			}
		}
	}
	m.expire()
}

// expire forgets what is too long ago. What services had that have something held
// counts on.
func (m *reference) expire() {
	long := func(at time.Time) bool { return time.Since(at) > m.hold.For }
	for service := range m.peaks {
		listed, held := m.numbers(service)
		m.peaks[service] = slices.DeleteFunc(m.peaks[service], func(p peak) bool {
			return p.n <= listed || held == 0 && long(p.until)
		})
	}
	m.gone = slices.DeleteFunc(m.gone, func(g goneHere) bool { return long(g.at) })
}

// forget has the registry report that some of what went by silence is gone.
func (m *reference) forget(reported func(goneHere) bool) {
	m.gone = slices.DeleteFunc(m.gone, func(g goneHere) bool {
		_, stored := m.objects[g.service].weights[g.ref.Name]
		if is := reported(g) && !stored; is && g.ref != g.service {
			for i, p := range m.peaks[g.service] {
				if !p.until.After(g.at) { // it counted the endpoint
					m.peaks[g.service][i] = p.without(g.ref)
				}
			}
		}
		return reported(g)
	})
}

// report has the registry report that records are gone.
func (m *reference) report(refs ...model.Ref) {
	for _, ref := range refs {
		if _, owns := m.objects[m.serviceOf(ref)].weights[ref.Name]; owns && ref.Kind == model.KindEndpoint {
			m.end(m.serviceOf(ref), ref)
		}
	}
	for _, ref := range refs {
		m.remove(ref)
	}
}

// apply takes what is there, and removes what is reported gone. It returns the
// records that are missing, which are left as they were, and those present.
func (m *reference) apply(
	objects []model.Object, rejected []model.Rejection,
	judge func(model.Ref, lastGood) (gone, reported bool), read func(place string) bool, deleted []model.Ref,
) (missing []model.Ref, present map[model.Ref]bool) {
	refs, places, at := map[model.Ref]string{}, map[string]string{}, map[model.Ref]string{}
	// All objects are in one namespace. What is said of others concerns none of them, and
	// what is said of all comes first.
	rejected = slices.SortedStableFunc(slices.Values(rejected), func(a, b model.Rejection) int { return cmp.Compare(a.Namespace, b.Namespace) })
	reject := func(ref model.Ref, reason, place string) {
		if refs[ref] == "" {
			refs[ref], at[ref] = reason, place
		}
	}
	for _, f := range rejected {
		switch {
		case f.Ref == (model.Ref{}) && f.Namespace != "" && f.Namespace != ref(model.KindService, "").Namespace:
		case f.Ref == (model.Ref{}):
			places[f.Place] = cmp.Or(places[f.Place], f.Reason)
		default:
			reject(f.Ref, f.Reason, f.Place)
		}
	}
	present = map[model.Ref]bool{}
	listed := map[model.Ref]bool{}
	before := maps.Clone(m.objects)
	m.were = before
	m.before = map[model.Ref]bool{}
	for ref, o := range before {
		for _, part := range o.parts(ref) {
			m.before[part] = true
		}
	}
	for _, o := range objects {
		ref := o.Record.Ref
		switch {
		case ref.Name == "" || listed[ref]:
		case poisoned(o):
			reject(ref, "poisoned", o.Record.Place)
		default:
			listed[ref], present[ref] = true, true
			good := m.goodOf(o, before[ref])
			for name := range good.weights {
				present[endpoint(name)] = true
			}
			for name, weight := range before[ref].weights {
				if _, still := good.weights[name]; !still {
					good.weights[name] = weight
					missing = append(missing, endpoint(name))
				}
			}
			m.objects[ref] = good
		}
	}
	for ref, have := range before {
		reason, named := refs[ref]
		if reason == "" && !slices.Contains(deleted, ref) {
			reason = places[have.place]
		}
		gone, reported := judge(ref, have)
		_, held := m.held[ref]
		switch {
		case listed[ref]:
		case reason != "" && held && !named:
		case reason != "":
			if held {
				for _, part := range have.parts(ref) {
					present[part] = true
				}
			}
			have.stale = reason
			if at[ref] != "" && read(have.place) && places[have.place] == "" {
				have.place = at[ref] // where it is now
			}
			m.objects[ref] = have
		case gone && reported:
			m.report(have.parts(ref)...)
		case gone:
			missing = append(missing, have.parts(ref)...)
		}
	}
	return missing, present
}

// settle has what is present not held any more.
func (m *reference) settle(present map[model.Ref]bool) {
	for ref := range present {
		for _, p := range m.peaks[m.serviceOf(ref)] {
			delete(p.held, ref)
		}
		delete(m.held, ref)
		m.gone = slices.DeleteFunc(m.gone, func(g goneHere) bool { return g.ref == ref })
	}
}

// renamed returns the missing records that new ones explain: an endpoint by one with its address at
// the same host, a service by its endpoints, or without any by a service of its host.
func (m *reference) renamed(missing []model.Ref) (former, by map[model.Ref]bool) {
	former, by = map[model.Ref]bool{}, map[model.Ref]bool{}
	kept := map[model.Ref]bool{}
	explains := func(ref model.Ref) (found bool) {
		host, address := m.objects[m.serviceOf(ref)].host, ref.Name[strings.LastIndex(ref.Name, "/")+1:]
		for service, o := range m.objects {
			for _, part := range o.parts(service) {
				same := ref.Kind == part.Kind && (ref.Kind == model.KindService || strings.HasSuffix(part.Name, "/"+address))
				if same && o.host == host && !m.before[part] && !slices.Contains(missing, part) {
					found, by[part] = true, true
				}
			}
		}
		return found
	}
	owns := map[model.Ref]bool{}
	for _, ref := range missing {
		if ref.Kind == model.KindEndpoint {
			owns[m.serviceOf(ref)] = true
			if former[ref] = explains(ref); !former[ref] {
				kept[m.serviceOf(ref)] = true
			}
		}
	}
	for _, ref := range missing {
		if ref.Kind == model.KindService {
			former[ref] = !kept[ref] && (owns[ref] || explains(ref))
		}
	}
	maps.DeleteFunc(former, func(_ model.Ref, is bool) bool { return !is })
	return former, by
}

// judge holds what is missing, or removes it.
func (m *reference) judge(missing []model.Ref, present map[model.Ref]bool) {
	former, by := m.renamed(missing)
	missing = slices.DeleteFunc(missing, func(ref model.Ref) bool { return former[ref] })
	maps.Copy(present, former)
	had, has, marks, lost, all := map[model.Ref]int{}, map[model.Ref]int{}, map[model.Ref]int{}, 0, 0
	is := func(ref model.Ref) bool { _, is := m.held[ref]; return is }
	fresh := slices.DeleteFunc(slices.Clone(missing), is)
	for service, o := range m.objects {
		for name := range o.weights {
			ref := endpoint(name)
			if m.before[ref] && !is(ref) {
				had[service]++
			}
			if !slices.Contains(missing, ref) && !by[ref] && (!is(ref) || present[ref]) {
				has[service]++
			}
		}
	}
	for service := range m.services() {
		marks[service] = m.mark(service, had[service])
		lost += max(0, marks[service]-has[service])
		all += marks[service]
	}
	whole := lost > 0 && lost >= m.hold.Min && float64(lost) >= m.hold.Share*float64(all)
	whole = m.hold.Share < 1 && len(fresh) > 0 && (whole || m.everything(fresh, all, present) || m.replaced(fresh, present))
	begin := map[model.Ref]model.Ref{} // what is held from now on
	for _, ref := range fresh {
		service := m.serviceOf(ref)
		switch {
		case whole:
			begin[ref] = model.Ref{}
		case marks[service] > m.hold.Min && has[service] == 0:
			begin[ref] = service
		}
	}
	m.falls(fresh, had, has)
	for ref := range former { // as if each had always had its new name
		if ref.Kind == model.KindEndpoint {
			m.end(m.serviceOf(ref), ref)
		}
	}
	for ref := range by {
		for i := range m.peaks[m.serviceOf(ref)] {
			m.peaks[m.serviceOf(ref)][i].n += index.EndpointsIn(ref.Kind)
		}
	}
	m.settle(present)
	end := m.tick(missing)
	m.stayWhole(missing, begin, end)
	for ref := range end {
		if ref.Kind == model.KindEndpoint {
			m.end(m.serviceOf(ref), ref)
		}
	}
	suspects := map[model.Ref]bool{}
	for _, cause := range begin {
		suspects[cause] = true
	}
	for _, ref := range fresh {
		if cause, holds := begin[ref]; holds {
			m.held[ref] = heldHere{cause, 1, time.Now()}
		} else {
			m.depart(ref)
		}
	}
	for _, ref := range fresh {
		if _, holds := begin[ref]; !holds {
			m.remove(ref)
		}
	}
	maps.Copy(end, former)
	for ref := range end {
		m.remove(ref)
	}
	m.recall(suspects, whole)
	m.expire()
	m.trim()
}

// services are all that are stored, or were lately.
func (m *reference) services() map[model.Ref]bool {
	all := map[model.Ref]bool{}
	for service := range m.objects {
		all[service] = true
	}
	for service := range m.peaks {
		all[service] = true
	}
	return all
}

func (m *reference) serviceOf(ref model.Ref) model.Ref {
	if ref.Kind == model.KindEndpoint {
		ref.Kind, ref.Name = model.KindService, ref.Name[:strings.LastIndex(ref.Name, "/")]
	}
	return ref
}

// tick counts a listing for what is held and missing, and returns what that confirms.
func (m *reference) tick(missing []model.Ref) (end map[model.Ref]bool) {
	end = map[model.Ref]bool{}
	for _, ref := range missing {
		h, is := m.held[ref]
		if !is {
			continue
		}
		if h.listings++; h.listings == 1 {
			h.first = time.Now()
		}
		m.held[ref] = h
		if h.listings >= 3 && time.Since(h.first) >= m.hold.For {
			end[ref] = true
		}
	}
	return end
}

// stayWhole has a missing object stay with all it owns, if anything of it stays that is
// missing.
func (m *reference) stayWhole(missing []model.Ref, begin map[model.Ref]model.Ref, end map[model.Ref]bool) {
	for _, service := range missing {
		if service.Kind == model.KindEndpoint {
			continue
		}
		var cause *model.Ref
		for _, part := range m.objects[service].parts(service) {
			by, begins := begin[part]
			if h, is := m.held[part]; is && !end[part] && slices.Contains(missing, part) {
				by, begins = h.cause, true
			}
			if begins {
				cause = &by
			}
		}
		if cause == nil {
			continue
		}
		delete(end, service)
		for _, part := range m.objects[service].parts(service) {
			_, holds := begin[part]
			if _, held := m.held[part]; !held && !holds && slices.Contains(missing, part) {
				begin[part] = *cause
			}
		}
	}
}

// falls notes how many endpoints services had until now that have fewer, beside the held ones.
func (m *reference) falls(fresh []model.Ref, had, has map[model.Ref]int) {
	for _, ref := range fresh {
		service := m.serviceOf(ref)
		if service != ref && has[service] < had[service] {
			held := map[model.Ref]bool{}
			for part := range m.held {
				if part != service && m.serviceOf(part) == service {
					held[part] = true
				}
			}
			m.peaks[service] = append(m.peaks[service], peak{time.Now(), had[service], held})
		}
	}
}

// depart remembers what is about to be removed.
func (m *reference) depart(ref model.Ref) {
	service := m.serviceOf(ref)
	o, weight := m.were[service], m.objects[service].weights[ref.Name]
	m.gone = append(m.gone, goneHere{ref, service, o.place, o.host, weight, time.Now(), m.step})
}

// newest has what went last come first.
func (m *reference) newest() []goneHere {
	return slices.SortedFunc(slices.Values(m.gone), func(a, b goneHere) int {
		return cmp.Or(b.at.Compare(a.at), a.ref.Compare(b.ref))
	})
}

// recall stores what went before it was suspicious.
func (m *reference) recall(suspects map[model.Ref]bool, whole bool) {
	lacks, back := m.lacks(), []string{}
	for _, g := range m.newest() {
		_, stored := m.objects[g.service].weights[g.ref.Name]
		var cause model.Ref
		if !whole {
			cause = g.service
		}
		if g.ref == g.service || stored || !suspects[cause] || m.taken(g) || lacks(g.service) <= 0 {
			continue
		}
		if _, there := m.objects[g.service]; !there {
			at := slices.IndexFunc(m.gone, func(o goneHere) bool { return o.ref == g.service })
			if at < 0 {
				continue
			}
			m.objects[g.service] = lastGood{place: m.gone[at].place, host: m.gone[at].host, weights: map[string]uint32{}}
			m.held[g.service] = heldHere{cause, 1, time.Now()}
		}
		m.objects[g.service].weights[g.ref.Name] = g.weight
		m.held[g.ref] = heldHere{cause, 1, time.Now()}
		back = append(back, g.ref.Name)
	}
	for _, name := range back {
		m.changed[name] = m.step
	}
	m.gone = slices.DeleteFunc(m.gone, func(g goneHere) bool { _, held := m.held[g.ref]; return held })
}

// lacks returns how many endpoints a service has lost that are not held.
func (m *reference) lacks() func(service model.Ref) int {
	return func(service model.Ref) (n int) {
		listed, held := m.numbers(service)
		for _, p := range m.peaks[service] {
			n = max(n, p.n+len(p.held)-listed-held)
		}
		return n
	}
}

// taken reports whether another endpoint has come to the address since, or got it.
func (m *reference) taken(g goneHere) bool {
	address := func(name string) string { return name[strings.LastIndex(name, "/")+1:] }
	for _, o := range m.objects {
		for name := range o.weights {
			if address(name) == address(g.ref.Name) && m.changed[name] >= g.step {
				return true
			}
		}
	}
	return false
}

// trim forgets what services have made up for.
func (m *reference) trim() {
	var left []goneHere
	lacks, kept := m.lacks(), map[model.Ref]int{}
	for _, g := range m.newest() {
		if g.ref == g.service && lacks(g.service) > 0 {
			left = append(left, g)
		}
		if g.ref != g.service && lacks(g.service) > kept[g.service] {
			kept[g.service]++
			left = append(left, g)
		}
	}
	m.gone = left
}

// replaced reports whether a listing has none of many endpoints that there were.
func (m *reference) replaced(fresh []model.Ref, present map[model.Ref]bool) bool {
	gone, stay, stored := 0, 0, map[model.Ref]bool{}
	for ref, o := range m.objects {
		for _, part := range o.parts(ref) {
			stored[part] = true
		}
	}
	for ref := range m.before {
		_, held := m.held[ref]
		switch {
		case ref.Kind != model.KindEndpoint:
		case slices.Contains(fresh, ref):
			gone++
		case stored[ref] && (!held || present[ref]):
			stay++
		}
	}
	return gone > m.hold.Min && stay == 0 && !m.edited
}

// everything reports whether nothing is left of what there was without what is
// missing: no record of before; no endpoint, be it a new one, though there were some
// lately; or no service either where there was no endpoint. What is held is gone.
func (m *reference) everything(fresh []model.Ref, endpoints int, present map[model.Ref]bool) bool {
	old, has, services := 0, map[model.Kind]int{}, 0
	for ref, o := range m.objects {
		for _, part := range o.parts(ref) {
			if m.before[part] && part.Kind == model.KindService {
				services++
			}
			if _, held := m.held[part]; held && !present[part] || slices.Contains(fresh, part) {
				continue
			}
			has[part.Kind]++
			if m.before[part] {
				old++
			}
		}
	}
	if old == 0 {
		return true
	}
	if endpoints > 0 {
		return has[model.KindEndpoint] == 0
	}
	return services > 0 && len(has) == 0
}

// remove removes one record, whatever is left of its object.
func (m *reference) remove(ref model.Ref) {
	delete(m.held, ref)
	delete(m.objects, ref)
	for _, o := range m.objects {
		delete(o.weights, ref.Name)
	}
}

// parts are the records of an object.
func (o lastGood) parts(ref model.Ref) []model.Ref {
	parts := []model.Ref{ref}
	for name := range o.weights {
		parts = append(parts, endpoint(name))
	}
	return parts
}

func endpoint(name string) model.Ref { return ref(model.KindEndpoint, name) }

func poisoned(o model.Object) bool {
	names := map[string]bool{}
	for _, rec := range o.Owned {
		if names[rec.Name] {
			return true
		}
		names[rec.Name] = true
	}
	return false
}

func (m *reference) goodOf(o model.Object, before lastGood) lastGood {
	g := lastGood{place: o.Record.Place, host: hostOf(o.Record), weights: map[string]uint32{}}
	for _, rec := range o.Owned {
		if old, had := before.weights[rec.Name]; had {
			g.weights[rec.Name] = old
		}
		m.weigh(g, rec.Name, weightOf(rec))
	}
	return g
}

func hostOf(rec model.Record) string {
	spec, _ := rec.Spec.(model.Service)
	return spec.Hosts.At(0)
}

func weightOf(rec model.Record) uint32 {
	spec, _ := rec.Spec.(model.Endpoint)
	return spec.Weight
}

// lines is the reference, one line per record, sorted.
func (m *reference) lines() (lines []string) {
	if m.marked {
		lines = append(lines, "mark")
	}
	for ref, o := range m.objects {
		_, held := m.held[ref]
		if held { // which is what is shown of it then; once it is released, it is stale as before
			o.stale = ""
		}
		lines = append(lines, fmt.Sprintf("%s in %s at %s stale %q held %t", ref.Name, o.place, o.host, o.stale, held))
		for _, name := range slices.Sorted(maps.Keys(o.weights)) {
			_, held := m.held[endpoint(name)]
			lines = append(lines, fmt.Sprintf("%s of %s weighs %d held %t", name, ref.Name, o.weights[name], held))
		}
	}
	slices.Sort(lines)
	return lines
}

// linesOf is the same of what a store holds.
func linesOf(s supervise.Store) (lines []string) {
	holds := heldIn(s)
	for rec := range s.List(model.Filter{Source: "reg"}) {
		_, held := holds.Of(rec.Ref, rec.Owner)
		switch rec.Kind {
		case model.KindHold:
		case model.KindSource:
			lines = append(lines, "mark")
		case model.KindEndpoint:
			lines = append(lines, fmt.Sprintf("%s of %s weighs %d held %t", rec.Name, rec.Owner.Name, weightOf(rec), held))
		default:
			stale := rec.Status.Stale
			if held { // which is what is shown of it then
				stale = ""
			}
			if len(stale) > 8 { // one of the supervisor's own
				stale = "poisoned"
			}
			lines = append(lines, fmt.Sprintf("%s in %s at %s stale %q held %t", rec.Name, rec.Place, hostOf(rec), stale, held))
		}
	}
	slices.Sort(lines)
	return lines
}
