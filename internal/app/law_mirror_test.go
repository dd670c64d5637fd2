package app

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// said is one reading of a registry, as plainly as it can be put.
type said struct {
	whole    bool
	objects  []source.Object
	rejected map[model.Ref]bool // there, but not to be taken
	deleted  []model.Ref        // reported gone, one by one

	owned     []model.Record // said by themselves, with their owners
	ownedGone []model.Ref
}

// mirror is what must be stored of one source: what its registry last said
// completely, the last good version of what is rejected, and what is held. All
// references are without a source.
type mirror struct {
	hold     source.Hold
	primed   bool
	objects  map[model.Ref]object
	held     map[model.Ref]model.Ref // record → cause; the zero one is the source as a whole
	drops    map[model.Ref]drop      // by cause
	rejected map[model.Ref]bool      // as was said last
	listed   bool                    // since the process began
	suspect  int                     // endpoints that another system keeps and may have been lost
	asked    time.Time               // when it spoke of a record of an unknown owner, until it is listed
}

// object is a record with those that come and go with it.
type object struct {
	record model.Record
	owned  map[model.Ref]model.Record
}

// drop is how far a drop is confirmed.
type drop struct {
	listings int
	first    time.Time
	back     int  // records that are there again
	lie      bool // so many that the rest goes with the next equal listing
}

func newMirror(hold source.Hold) *mirror {
	m := &mirror{objects: map[model.Ref]object{}, held: map[model.Ref]model.Ref{}, rejected: map[model.Ref]bool{}}
	m.restart(hold)
	return m
}

// mirrorOf is the mirror of a source of which this is stored.
func mirrorOf(hold source.Hold, stored []model.Record) *mirror {
	m := newMirror(hold)
	var holds model.Holds
	for _, r := range stored {
		holds.Add(r)
	}
	for _, owned := range []bool{false, true} {
		for _, r := range stored {
			ref, owner := plain(r.Ref), plain(r.Owner)
			switch {
			case owned != (r.Owner != model.Ref{}):
				continue
			case r.Kind == model.KindSource:
				m.primed = true
			case r.Kind == model.KindHold:
				continue
			case owned:
				m.objects[owner].owned[ref] = r
			default:
				m.objects[ref] = object{r, map[model.Ref]model.Record{}}
			}
			if hold, held := holds.Of(r.Ref, r.Owner); held {
				m.held[ref] = plain(hold.Cause)
			}
		}
	}
	return m
}

func plain(ref model.Ref) model.Ref { ref.Source = ""; return ref }

// restart has a new supervisor count what is held anew.
func (m *mirror) restart(hold source.Hold) {
	m.hold, m.drops, m.rejected, m.asked = hold, map[model.Ref]drop{}, map[model.Ref]bool{}, time.Time{}
}

func (o object) parts(ref model.Ref) []model.Ref {
	return append(slices.SortedFunc(maps.Keys(o.owned), model.Ref.Compare), ref)
}

// take takes a reading.
func (m *mirror) take(s said) {
	before := maps.Clone(m.objects)
	present := map[model.Ref]bool{}
	var missing []model.Ref
	m.reject(s)
	for _, o := range s.objects {
		now, ref := object{o.Record, map[model.Ref]model.Record{}}, o.Record.Ref
		present[ref] = true
		for _, r := range o.Owned {
			now.owned[r.Ref], present[r.Ref] = r, true
		}
		for part, r := range before[ref].owned {
			if _, ok := now.owned[part]; !ok {
				now.owned[part] = r
				missing = append(missing, part)
			}
		}
		m.objects[ref] = now
	}
	for ref, was := range before {
		switch {
		case present[ref]:
		case s.rejected[ref]:
			if _, held := m.held[ref]; !held {
				continue // nothing is said of its parts that may be held
			}
			for _, part := range was.parts(ref) {
				present[part] = true
			}
		case s.whole || slices.Contains(s.deleted, ref):
			missing = append(missing, was.parts(ref)...)
		}
	}
	missing = append(missing, m.takeOwned(s, present)...)
	missing = slices.DeleteFunc(missing, func(ref model.Ref) bool { return present[ref] }) // an object lacked it, and it is said by itself
	back := map[model.Ref]int{}                                                            // by cause
	for ref, cause := range m.held {
		if present[ref] {
			delete(m.held, ref)
			back[cause]++
		}
	}
	if s.whole {
		m.primed, m.listed = true, true
		m.judge(before, missing, back)
		return
	}
	for cause, n := range back {
		m.drops[cause] = drop{back: m.drops[cause].back + n, lie: m.drops[cause].lie}
	}
	m.remove(missing)
}

// weigh is how many endpoints a record counts for.
func weigh(ref model.Ref) int {
	if ref.Kind == model.KindEndpoint || ref.Kind == model.KindWorkload {
		return 1
	}
	return 0
}

// judge removes what a listing lacks, or holds it.
func (m *mirror) judge(before map[model.Ref]object, missing []model.Ref, back map[model.Ref]int) {
	touched, renewed, fresh := map[model.Ref]bool{}, map[model.Ref]bool{}, map[model.Ref]bool{}
	for cause := range back {
		touched[cause], renewed[cause] = true, true
	}
	causes, suspicious := m.causes(before, missing)
	for ref, cause := range causes {
		was, held := m.held[ref]
		if touched[cause] = true; !held || was != cause {
			renewed[cause], fresh[cause] = true, true
		}
		if held {
			touched[was] = true
		}
		m.held[ref] = cause
	}
	silent := map[model.Ref]bool{} // causes of which not everything was looked for
	rest, endpoints := map[model.Ref]int{}, map[model.Ref]int{}
	for ref, cause := range m.held {
		rest[cause]++
		endpoints[cause] += weigh(ref)
		silent[cause] = silent[cause] || !slices.Contains(missing, ref)
	}
	for cause := range touched {
		d := m.drops[cause]
		back, lie := d.back+back[cause], d.lie
		if fresh[cause] {
			back = 0
		}
		if fresh[cause] || !silent[cause] {
			few := 9*rest[cause] <= back || endpoints[cause] < m.hold.Min && rest[cause] < back
			lie = few && !fresh[cause] && !suspicious[cause]
		}
		switch renewed := renewed[cause] || d.listings == 0; {
		case renewed && silent[cause]:
			d = drop{}
		case renewed:
			d = drop{listings: 1, first: time.Now()}
		case !silent[cause]:
			d.listings++
		}
		d.back, d.lie = back, lie
		m.drops[cause] = d
	}
	m.remove(slices.DeleteFunc(missing, func(ref model.Ref) bool {
		cause, held := causes[ref]
		d := m.drops[cause]
		return held && (d.listings < 3 || time.Since(d.first) < m.hold.For) && (!d.lie || d.listings < 2)
	}))
}

// causes says which of what is missing is held, and what for, and which of the
// causes hold something else than what was held before.
func (m *mirror) causes(before map[model.Ref]object, missing []model.Ref) (causes map[model.Ref]model.Ref, suspicious map[model.Ref]bool) {
	causes, suspicious = map[model.Ref]model.Ref{}, map[model.Ref]bool{}
	lost, endpoints, owner := m.suspect, m.suspect, map[model.Ref]model.Ref{}
	lostOf, gone := map[model.Ref]int{}, map[model.Ref]bool{}
	for ref, o := range before {
		for _, part := range o.parts(ref) {
			owner[part] = ref
			endpoints += weigh(part)
		}
	}
	for _, ref := range missing {
		lost += weigh(ref)
		if gone[ref] = true; ref != owner[ref] {
			lostOf[owner[ref]]++
		}
	}
	for ref := range m.held {
		if !gone[ref] {
			lost += weigh(ref)
		}
	}
	all := lost > 0 && lost >= m.hold.Min && float64(lost) > m.hold.Share*float64(endpoints) ||
		m.hold.Share < 1 && len(missing) > 0 && m.everything(owner, gone)
	slices.SortFunc(missing, func(a, b model.Ref) int {
		return cmp.Or(cmp.Compare(btoi(a != owner[a]), btoi(b != owner[b])), a.Compare(b))
	})
	last := map[model.Ref]model.Ref{} // by object
	for _, ref := range missing {
		of := owner[ref]
		if cause, held := m.held[ref]; all {
			causes[ref], suspicious[model.Ref{}] = model.Ref{}, true
		} else if lostOf[of] > m.hold.Min && lostOf[of] == len(before[of].owned) {
			causes[ref], suspicious[of] = of, true
		} else if held {
			causes[ref] = cause
		}
		if cause, held := causes[ref]; held {
			last[of] = cause
		}
	}
	for _, ref := range missing {
		if _, held := causes[ref]; held || !gone[owner[ref]] {
			continue
		}
		if cause, some := last[owner[ref]]; some { // an object stays whole
			causes[ref], suspicious[cause] = cause, true
		}
	}
	return causes, suspicious
}

// everything reports whether what is missing leaves nothing of what was stored
// before, be it little: no record at all; no endpoint, not even a new one; or no
// service where there was no endpoint. What is held and not looked for is neither
// what there was nor what is left.
func (m *mirror) everything(before map[model.Ref]model.Ref, gone map[model.Ref]bool) bool {
	silent := func(ref model.Ref) bool { _, held := m.held[ref]; return held && !gone[ref] }
	old, endpoints, services := 0, 0, 0
	for ref, o := range m.objects {
		for _, part := range o.parts(ref) {
			if gone[part] || silent(part) {
				continue
			}
			endpoints += weigh(part)
			services += btoi(part.Kind == model.KindService)
			if _, was := before[part]; was {
				old++
			}
		}
	}
	hadEndpoints, hadServices := false, false
	for ref := range before {
		hadEndpoints = hadEndpoints || weigh(ref) > 0 && !silent(ref)
		hadServices = hadServices || ref.Kind == model.KindService && !silent(ref)
	}
	return old == 0 || hadEndpoints && endpoints == 0 || !hadEndpoints && hadServices && services == 0 && endpoints == 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (m *mirror) remove(refs []model.Ref) {
	for _, ref := range refs {
		delete(m.held, ref)
		delete(m.objects, ref)
		for _, o := range m.objects {
			delete(o.owned, ref)
		}
	}
	stands := map[model.Ref]bool{}
	for _, cause := range m.held {
		stands[cause] = true
	}
	maps.DeleteFunc(m.drops, func(cause model.Ref, _ drop) bool { return !stands[cause] })
}

// release removes what is held, as an operator does, but for objects of which
// something was said by itself since: they stay until a listing lacks them.
func (m *mirror) release() {
	for ref, o := range m.objects {
		if slices.ContainsFunc(o.parts(ref), func(part model.Ref) bool { _, held := m.held[part]; return !held }) {
			delete(m.held, ref)
		}
	}
	m.remove(slices.Collect(maps.Keys(m.held)))
}

// records is everything that must be stored.
func (m *mirror) records() map[model.Ref]model.Record {
	all := map[model.Ref]model.Record{}
	for ref, o := range m.objects {
		all[ref] = o.record
		for part, r := range o.owned {
			r.Owner = ref
			all[part] = r
		}
	}
	return all
}
