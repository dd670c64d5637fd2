package laws_test

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// said is one reading of a registry, as plainly as it can be put.
type said struct {
	whole    bool
	objects  []model.Object
	rejected map[model.Ref]bool // there, but not to be taken
	deleted  []model.Ref        // reported gone, one by one

	owned     []model.Record // said by themselves, with their owners
	ownedGone []model.Ref
}

// mirror is what must be stored of one source: what its registry last said
// completely, the last good version of what is rejected, and what is held. All
// references are without a source.
type mirror struct {
	hold    hold.Config
	primed  bool
	objects map[model.Ref]object
	held    map[model.Ref]heldHere
	marks
	rejected  map[model.Ref]bool   // as was said last
	listed    bool                 // since the process began
	renewed   bool                 // listed as it is configured now
	at        time.Time            // of the last complete listing
	suspected int                  // endpoints that another system keeps and may have been lost
	isStored  func(model.Ref) bool // whether the store has a record
	asked     time.Time            // when it spoke of a record of an unknown owner, until it is listed
}

// object is a record with those that come and go with it.
type object struct {
	record model.Record
	owned  map[model.Ref]model.Record
}

func newMirror(hold hold.Config) *mirror {
	m := &mirror{objects: map[model.Ref]object{}, held: map[model.Ref]heldHere{}, rejected: map[model.Ref]bool{}}
	m.marks = newMarks()
	m.restart(hold)
	return m
}

// mirrorOf is the mirror of a source of which this is stored.
func mirrorOf(hold hold.Config, stored []model.Record) *mirror {
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
				m.held[ref] = heldHere{cause: plain(hold.Cause)}
			}
		}
	}
	return m
}

func plain(ref model.Ref) model.Ref { ref.Source = ""; return ref }

// restart has a new supervisor count what is held anew.
func (m *mirror) restart(hold hold.Config) {
	m.hold, m.rejected, m.asked, m.renewed = hold, map[model.Ref]bool{}, time.Time{}, false
	for ref, h := range m.held {
		m.held[ref] = heldHere{cause: h.cause}
	}
}

func (o object) parts(ref model.Ref) []model.Ref {
	return append(slices.SortedFunc(maps.Keys(o.owned), model.Ref.Compare), ref)
}

// take takes a reading. A listing may report that objects are gone, as they came from
// here.
func (m *mirror) take(s said) {
	if s.whole && len(s.deleted) > 0 {
		m.take(said{deleted: s.deleted})
		s.deleted = nil
	}
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
	if s.whole {
		m.primed, m.renewed = true, true
		m.judge(before, missing, present)
		m.listed, m.at = true, time.Now()
		return
	}
	m.settle(present)
	m.report(s, before, missing, present)
}

// weigh is how many endpoints a record counts for.
func weigh(ref model.Ref) int {
	if ref.Kind == model.KindEndpoint || ref.Kind == model.KindWorkload {
		return 1
	}
	return 0
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
}

// release removes what is held, as an operator does, but for objects of which
// something was said by itself since: they stay until a listing lacks them.
func (m *mirror) release() {
	for ref, o := range m.objects {
		if slices.ContainsFunc(o.parts(ref), func(part model.Ref) bool { _, held := m.held[part]; return !held }) {
			delete(m.held, ref)
		}
	}
	if len(m.held) > 0 {
		m.marks = newMarks()
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
