package plan

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
)

// stage is a step of the move from one form to the other. Each stage is safe whether or not
// the next write succeeds. One write changes the ServiceEntry from endpoints to a selector,
// or back, and its new endpoints exist before that.
type stage int

const (
	allInline   stage = iota // endpoints in ServiceEntries
	bothInline               // and WorkloadEntries that nothing selects
	bothSelects              // WorkloadEntries that the first ServiceEntry selects, and the other ServiceEntries in their inline form
	allSelects               // WorkloadEntries alone
)

// presence is the existing objects of a service that matter for its form.
type presence struct {
	first     bool // the first ServiceEntry
	selects   bool // and it selects our WorkloadEntries
	workloads int  // of any
	lacks     int  // missing WorkloadEntries
	others    bool // the other ServiceEntries of the inline form are in order
	held      bool // an undesired WorkloadEntry must not be deleted yet
}

// presenceOf returns the first ServiceEntry of a service.
func presenceOf(c translate.Settings, key object.Key, stored *observed.Objects) presence {
	first, there := stored.Object(object.Ref{Kind: object.ServiceEntry, Namespace: key.Namespace, Name: compose.NameOf(key.Name)})
	return presence{first: there, selects: len(first.Selector) > 0 && maps.Equal(first.Selector, c.Selector(key.Name))}
}

// inUse returns the properties of existing objects that the layout of a service depends on.
func inUse(key object.Key, stored *observed.Objects) translate.InUse {
	first, _ := stored.Object(object.Ref{Kind: object.ServiceEntry, Namespace: key.Namespace, Name: compose.NameOf(key.Name)})
	return translate.InUse{Exists: stored.Exists(key), Ports: first.KeptNames()}
}

// next returns the next stage of a service on its way to a form, and whether the stage must
// last for a while. An istiod follows ServiceEntries and WorkloadEntries by two watches,
// and one of them may lag.
func (p presence) next(toWorkloads bool) (s stage, lasts bool) {
	switch {
	case toWorkloads && (p.selects || !p.first && p.lacks <= AtATime):
		return allSelects, false
	case toWorkloads:
		return bothInline, p.lacks == 0
	case p.selects && (!p.others || p.held):
		return bothSelects, false
	case p.selects:
		return bothInline, false
	case p.workloads > 0:
		return bothInline, true
	default:
		return allInline, false
	}
}

// AtATime is the number of writes that a key may have at a time while others wait.
const AtATime = 16

// over returns the stage after one that has lasted.
func over(toWorkloads bool) stage {
	if toWorkloads {
		return bothSelects
	}
	return allInline
}

// existing is the objects of a service in the API server.
type existing struct {
	key    object.Key
	have   []object.Observed // of the key
	stored *observed.Objects // all own objects
}

// next returns the next desired objects of a service: in its form, or on its way from the
// other form. held reports whether an object must neither change nor be deleted yet.
func next(c translate.Settings, s *catalog.Service, e existing, held func(object.Observed) bool, before translate.Parts, waits *Waits) translate.Translation {
	is, in := presenceOf(c, e.key, e.stored), inUse(e.key, e.stored)
	for i := range e.have {
		if e.have[i].Kind == object.WorkloadEntry {
			is.workloads++
		}
	}
	to := c.IsWorkloads(s, is.selects || is.workloads > 0)
	if waits.Final || to && is.selects || !to && !is.selects && is.workloads == 0 {
		waits.Forget(e.key)
		return c.Service(s, to, in, before)
	}
	inline, selects := c.Service(s, false, in, before), c.Service(withWorkloads(s), true, in, before)
	maps.Copy(inline.Parts, selects.Parts)
	selects.Parts = inline.Parts
	workloads := workloadsAmong(selects.Objects)
	is.lacks = len(workloads) - count(workloads, e.stored)
	is.others = areInOrder(inline.Objects, compose.NameOf(e.key.Name), e.stored)
	is.held = mayNotGo(workloads, e.have, held)
	stage, lasts := is.next(to)
	after := waits.lasting(e.key, to, lasts)
	if lasts && after == 0 {
		stage = over(to)
	}
	if stage == bothSelects && !compose.TakesWorkloads(s) {
		stage = bothInline // a selecting ServiceEntry would have another resolution than the rest
	}
	t := inline
	if stage >= bothSelects {
		t = selects
	}
	t.After, t.Draft = after, nil
	if !to { // missing WorkloadEntries are not worth writing
		selects.Objects = slices.DeleteFunc(selects.Objects, func(o object.Object) bool {
			_, there := e.stored.Object(o.Ref())
			return o.Kind == object.WorkloadEntry && !there
		})
		workloads = workloadsAmong(selects.Objects)
	}
	switch stage {
	case bothInline:
		t.Objects = slices.Concat(inline.Objects, workloads)
	case bothSelects:
		t.Objects = withOthers(selects.Objects, inline.Objects)
	case allSelects:
		t.Objects = selects.Objects
	case allInline:
	}
	return t
}

// withWorkloads returns a service as it was with WorkloadEntries. A service with DNS names
// has none, but its former ones are left for a while.
func withWorkloads(s *catalog.Service) *catalog.Service {
	if compose.TakesWorkloads(s) {
		return s
	}
	was, definition := *s, *s.Definition
	definition.Ports, definition.Resolution = compose.WrittenPorts(s), model.ResolutionStatic
	was.Definition = &definition
	return &was
}

// count returns how many objects exist.
func count(wanted []object.Object, stored *observed.Objects) (n int) {
	for i := range wanted {
		if _, ok := stored.Object(wanted[i].Ref()); ok {
			n++
		}
	}
	return n
}

// areInOrder reports whether all objects but the first are in order.
func areInOrder(objects []object.Object, first string, stored *observed.Objects) bool {
	return !slices.ContainsFunc(objects, func(o object.Object) bool {
		is, ok := stored.Object(o.Ref())
		return o.Name != first && (!ok || o.Differs(is) != "")
	})
}

// mayNotGo reports whether an undesired WorkloadEntry has to wait.
func mayNotGo(wanted []object.Object, have []object.Observed, held func(object.Observed) bool) bool {
	names := make(map[string]bool, len(wanted))
	for i := range wanted {
		names[wanted[i].Name] = true
	}
	return slices.ContainsFunc(have, func(h object.Observed) bool {
		return h.Kind == object.WorkloadEntry && !names[h.Name] && held(h)
	})
}

func workloadsAmong(objects []object.Object) []object.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o object.Object) bool { return o.Kind != object.WorkloadEntry })
}

// withOthers adds the objects that have other names.
func withOthers(objects, others []object.Object) []object.Object {
	named := make(map[object.Ref]bool, len(objects))
	for i := range objects {
		named[objects[i].Ref()] = true
	}
	all := slices.Clip(objects)
	for _, o := range others {
		if !named[o.Ref()] {
			all = append(all, o)
		}
	}
	return all
}

// SettleFor is how long a lasting stage lasts: far longer than the lag of a healthy istiod,
// and negligible beside the writes of a move.
const SettleFor = 5 * time.Second

// Waits records since when moving services are in a lasting stage.
type Waits struct {
	Long time.Duration // how long a stage lasts
	// Final asks for the final form at once, as a plan without writes does.
	Final bool

	mu  sync.Mutex
	all map[object.Key]lasting
}

type lasting struct {
	toWorkloads bool
	since       time.Time
}

// lasting returns how much longer a stage has to last; zero if it is over, or need not.
func (w *Waits) lasting(key object.Key, toWorkloads, lasts bool) time.Duration {
	if !lasts {
		w.Forget(key)
		return 0
	}
	return w.Remains(key, toWorkloads, time.Now())
}

// Remains returns how much longer a stage has to last.
func (w *Waits) Remains(key object.Key, toWorkloads bool, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.all[key]
	if !ok || at.toWorkloads != toWorkloads {
		at = lasting{toWorkloads, now}
		if w.all == nil {
			w.all = map[object.Key]lasting{}
		}
		w.all[key] = at
	}
	return max(w.Long-now.Sub(at.since), 0)
}

// Forget ends the stage of a service.
func (w *Waits) Forget(key object.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, key)
}
