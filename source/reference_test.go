package source_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// reference is what the store must hold, kept the slow and obvious way: the
// last good version of every object, and what is held of them.
type reference struct {
	objects map[model.Ref]lastGood
	marked  bool

	before map[model.Ref]bool // what was stored before the last reading
	hold   source.Hold
	held   map[model.Ref]model.Ref // objects and endpoints → cause; the zero one is the source
	drops  map[model.Ref]drop      // by cause
}

type lastGood struct {
	place, host string
	weights     map[string]uint32 // by the name of the owned endpoint
	stale       string
}

// drop is how far the drop of what is held for one cause is confirmed.
type drop struct {
	listings int
	first    time.Time
	back     int  // records that were held for it and are there again
	lie      bool // so many that the rest goes with the next equal listing
}

func newReference(hold source.Hold) *reference {
	return &reference{
		objects: map[model.Ref]lastGood{}, hold: hold,
		held: map[model.Ref]model.Ref{}, drops: map[model.Ref]drop{},
	}
}

func (m *reference) replace(l source.Listing) {
	m.marked = m.marked || l.Places == nil
	read := func(place string) bool { return l.Places == nil || slices.Contains(l.Places, place) }
	missing, present := m.apply(l.Objects, l.Rejected, func(ref model.Ref, have lastGood) (gone, reported bool) {
		return read(have.place), slices.Contains(l.Removed, have.place)
	}, read, nil)
	m.judge(missing, present)
}

func (m *reference) change(c source.Change) {
	rejected := slices.DeleteFunc(slices.Clone(c.Rejected), func(f source.Rejection) bool {
		return f.Ref == (model.Ref{}) && f.Place == "" // says nothing about any record
	})
	missing, present := m.apply(c.Upserts, rejected, func(ref model.Ref, _ lastGood) (gone, reported bool) {
		return slices.Contains(c.Deletes, ref), true
	}, func(string) bool { return false }, c.Deletes)
	for _, cause := range m.settle(present) {
		m.drops[cause] = drop{back: m.drops[cause].back + 1, lie: m.drops[cause].lie}
	}
	for _, ref := range missing {
		m.remove(ref)
	}
}

// delta applies single endpoints: they end neither that their owner is stale nor
// that it is held.
func (m *reference) delta(c source.Change) {
	present := map[model.Ref]bool{}
	for _, rec := range c.OwnedUpserts {
		if owner, stored := m.objects[rec.Owner]; stored {
			owner.weights[rec.Name] = weightOf(rec)
			present[rec.Ref] = true
		}
	}
	for _, cause := range m.settle(present) {
		m.drops[cause] = drop{back: m.drops[cause].back + 1, lie: m.drops[cause].lie}
	}
	for _, ref := range c.OwnedDeletes {
		if !present[ref] {
			m.remove(ref)
		}
	}
	m.prune()
}

// restart has what is held confirmed anew, and no drop is known to be a lie.
func (m *reference) restart() {
	for cause := range m.drops {
		m.drops[cause] = drop{}
	}
}

// release lets go of what is held, but for an object of which something is there.
func (m *reference) release() {
	for ref, o := range m.objects {
		if slices.ContainsFunc(o.parts(ref), func(part model.Ref) bool { _, held := m.held[part]; return !held }) {
			delete(m.held, ref)
		}
	}
	for ref := range m.held {
		m.remove(ref)
	}
	m.prune()
}

// apply takes what is there, and removes what is reported gone. It returns the
// records that are missing, which are left as they were, and those present.
func (m *reference) apply(
	objects []source.Object, rejected []source.Rejection,
	judge func(model.Ref, lastGood) (gone, reported bool), read func(place string) bool, deleted []model.Ref,
) (missing []model.Ref, present map[model.Ref]bool) {
	refs, places, at := map[model.Ref]string{}, map[string]string{}, map[model.Ref]string{}
	// All objects are in one namespace. What is said of others concerns none of them, and
	// what is said of all comes first.
	rejected = slices.SortedStableFunc(slices.Values(rejected), func(a, b source.Rejection) int { return cmp.Compare(a.Namespace, b.Namespace) })
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
			good := goodOf(o)
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
			for _, part := range have.parts(ref) {
				m.remove(part)
			}
		case gone:
			missing = append(missing, have.parts(ref)...)
		}
	}
	return missing, present
}

// settle has what is present not held any more, and returns the causes it was held for.
func (m *reference) settle(present map[model.Ref]bool) (causes []model.Ref) {
	for ref := range present {
		if cause, held := m.held[ref]; held {
			delete(m.held, ref)
			causes = append(causes, cause)
		}
	}
	return causes
}

// judge holds what is missing, or removes it.
func (m *reference) judge(missing []model.Ref, present map[model.Ref]bool) {
	was := maps.Clone(m.held)
	changed := map[model.Ref]bool{} // causes with another set
	back, fresh := map[model.Ref]int{}, map[model.Ref]bool{}
	for _, cause := range m.settle(present) {
		changed[cause] = true
		back[cause]++
	}
	causes, drops := m.causes(missing)
	for ref, cause := range causes {
		if old, held := was[ref]; !held || old != cause {
			changed[cause], fresh[cause] = true, true
		}
		m.held[ref] = cause
	}
	silent := map[model.Ref]bool{} // causes of which something was not looked for
	rest := map[model.Ref][]model.Ref{}
	for ref, cause := range m.held {
		rest[cause] = append(rest[cause], ref)
		silent[cause] = silent[cause] || !slices.Contains(missing, ref)
	}
	for cause, rest := range rest {
		d := m.drops[cause]
		back, lie := d.back+back[cause], d.lie
		if fresh[cause] {
			back = 0
		}
		if fresh[cause] || !silent[cause] {
			lie = !fresh[cause] && !drops[cause] && m.fewOf(rest, back)
		}
		switch {
		case (changed[cause] || d.listings == 0) && silent[cause]:
			d = drop{}
		case changed[cause] || d.listings == 0:
			d = drop{listings: 1, first: time.Now()}
		case !silent[cause]:
			d.listings++
		}
		d.back, d.lie = back, lie
		m.drops[cause] = d
	}
	for _, ref := range missing {
		cause, held := m.held[ref]
		if d := m.drops[cause]; !held || d.listings >= 3 && time.Since(d.first) >= m.hold.For || d.lie && d.listings >= 2 {
			m.remove(ref)
		}
	}
	m.prune()
}

// fewOf reports whether a rest is few beside what is back.
func (m *reference) fewOf(rest []model.Ref, back int) bool {
	endpoints := 0
	for _, ref := range rest {
		if ref.Kind == model.KindEndpoint {
			endpoints++
		}
	}
	return 9*len(rest) <= back || endpoints < m.hold.Min && len(rest) < back
}

// causes says which of the missing records are held, and what for, and which of
// the causes hold something else than what was held before.
func (m *reference) causes(missing []model.Ref) (causes map[model.Ref]model.Ref, drops map[model.Ref]bool) {
	causes, drops = map[model.Ref]model.Ref{}, map[model.Ref]bool{}
	lost := map[model.Ref]bool{}
	for _, ref := range slices.Concat(missing, slices.Collect(maps.Keys(m.held))) {
		if ref.Kind == model.KindEndpoint {
			lost[ref] = true
		}
	}
	n, all := float64(len(lost)), 0.0
	for ref := range m.before {
		if ref.Kind == model.KindEndpoint {
			all++
		}
	}
	if n > 0 && n >= float64(m.hold.Min) && n > m.hold.Share*all || m.hold.Share < 1 && m.everything(missing) {
		for _, ref := range missing {
			causes[ref] = model.Ref{}
		}
		drops[model.Ref{}] = true
		return causes, drops
	}
	for service, o := range m.objects {
		parts := slices.DeleteFunc(o.parts(service), func(ref model.Ref) bool { return !slices.Contains(missing, ref) })
		endpoints := len(parts)
		if slices.Contains(parts, service) {
			endpoints--
		}
		stored := 0
		for name := range o.weights {
			if m.before[endpoint(name)] {
				stored++
			}
		}
		var cause *model.Ref
		for _, ref := range parts {
			if by, held := m.held[ref]; held {
				causes[ref] = by
				cause = &by
			}
		}
		switch {
		case endpoints > m.hold.Min && endpoints == stored:
			cause = &service
			drops[service] = true
			for _, ref := range parts {
				causes[ref] = service
			}
		case cause != nil && slices.Contains(parts, service): // it stays whole
			for _, ref := range parts {
				if _, held := causes[ref]; !held {
					causes[ref], drops[*cause] = *cause, true
				}
			}
		}
	}
	return causes, drops
}

// everything reports whether nothing is left of what was there without what is
// missing: no record of before; no endpoint, be it a new one; or no service
// either where there was no endpoint. What is held and was not looked for is as
// good as gone.
func (m *reference) everything(missing []model.Ref) bool {
	kinds := func(of func(model.Ref) bool) (had map[model.Kind]int) {
		had = map[model.Kind]int{}
		for ref, o := range m.objects {
			for _, part := range o.parts(ref) {
				if of(part) {
					had[part.Kind]++
				}
			}
		}
		return had
	}
	gone := func(ref model.Ref) bool {
		_, held := m.held[ref]
		return held || slices.Contains(missing, ref)
	}
	had := map[model.Kind]int{}
	for ref := range m.before {
		if _, held := m.held[ref]; !held || slices.Contains(missing, ref) {
			had[ref.Kind]++
		}
	}
	has := kinds(func(ref model.Ref) bool { return !gone(ref) })
	switch old := kinds(func(ref model.Ref) bool { return !gone(ref) && m.before[ref] }); {
	case len(missing) == 0:
		return false
	case len(old) == 0:
		return true
	case had[model.KindEndpoint] > 0:
		return has[model.KindEndpoint] == 0
	}
	return had[model.KindService] > 0 && len(has) == 0
}

// remove removes one record, whatever is left of its object.
func (m *reference) remove(ref model.Ref) {
	delete(m.held, ref)
	delete(m.objects, ref)
	for _, o := range m.objects {
		delete(o.weights, ref.Name)
	}
	m.prune()
}

// prune forgets drops of which nothing is held any more.
func (m *reference) prune() {
	for cause := range m.drops {
		if !slices.Contains(slices.Collect(maps.Values(m.held)), cause) {
			delete(m.drops, cause)
		}
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

func poisoned(o source.Object) bool {
	names := map[string]bool{}
	for _, rec := range o.Owned {
		if names[rec.Name] {
			return true
		}
		names[rec.Name] = true
	}
	return false
}

func goodOf(o source.Object) lastGood {
	g := lastGood{place: o.Record.Place, host: hostOf(o.Record), weights: map[string]uint32{}}
	for _, rec := range o.Owned {
		g.weights[rec.Name] = weightOf(rec)
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
func linesOf(s source.Store) (lines []string) {
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
