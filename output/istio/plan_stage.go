package istio

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/model"
)

// serviceObjects returns the next desired objects of a service: in its form, or on its way
// from the other form.
func (w *Writer) serviceObjects(key Key, s *catalog.Service, have []Observed, waits func(Observed) wait) Translation {
	is := w.presence(key, have)
	to := w.config.isWorkloads(s, is.selects || is.workloads > 0)
	if w.rehearses || to && is.selects || !to && !is.selects && is.workloads == 0 {
		w.settling.forget(key)
		return w.translate(key, s, to, w.inUse(key))
	}
	before, in := w.known.of(key), w.inUse(key)
	inline, partsInline := w.config.translate(w.options.Instance, s, false, in, before)
	selects, partsSelects := w.config.translate(w.options.Instance, withWorkloads(s), true, in, before)
	maps.Copy(partsInline, partsSelects)
	w.known.keep(key, partsInline)
	workloads := workloadsAmong(selects.Objects)
	is.lacks = w.count(workloads, false)
	is.others = w.areInOrder(inline.Objects, compose.NameOf(key.Name))
	is.held = mayNotGo(workloads, have, waits)
	stage, after := w.stage(key, is, to)
	if stage == bothSelects && !compose.TakesWorkloads(s) {
		stage = bothInline // a selecting ServiceEntry would have another resolution than the rest
	}
	t := inline
	if stage >= bothSelects {
		t = selects
	}
	t.after, t.draft = after, nil
	if !to { // missing WorkloadEntries are not worth writing
		selects.Objects = slices.DeleteFunc(selects.Objects, func(o Object) bool { return o.Kind == WorkloadEntry && !w.isThere(o) })
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
	definition.Resolution = model.ResolutionStatic
	was.Definition = &definition
	return &was
}

// stage returns the next stage, and the time until the next reconciliation.
func (w *Writer) stage(key Key, is present, to bool) (stage, time.Duration) {
	next, lasts := is.next(to)
	if !lasts {
		w.settling.forget(key)
		return next, 0
	}
	remains := w.settling.remains(key, to, cmp.Or(w.options.settle, settleFor), time.Now())
	if remains > 0 {
		return next, remains
	}
	return over(to), 0
}

// presence returns the existing objects of a service, before the desired ones are known.
func (w *Writer) presence(key Key, have []Observed) (is present) {
	is.first, is.selects = w.selects(key)
	for i := range have {
		if have[i].Kind == WorkloadEntry {
			is.workloads++
		}
	}
	return is
}

// selects reports whether the first ServiceEntry of a service exists, and whether it
// selects our WorkloadEntries.
func (w *Writer) selects(key Key) (there, selects bool) {
	first, there := w.view.object(Ref{ServiceEntry, key.Namespace, compose.NameOf(key.Name)})
	return there, len(first.selector) > 0 && maps.Equal(first.selector, w.config.layout(w.options.Instance, true, inUse{}).Selector(key.Name))
}

// exists returns a function that reports whether a name of a ServiceEntry is in use.
func (w *Writer) exists(key Key) func(name string) bool {
	return func(name string) bool {
		_, ok := w.view.object(Ref{ServiceEntry, key.Namespace, name})
		return ok
	}
}

func (w *Writer) isThere(o Object) bool {
	_, ok := w.view.object(o.Ref())
	return ok
}

// count returns how many objects exist, or are missing.
func (w *Writer) count(objects []Object, there bool) (n int) {
	for i := range objects {
		if w.isThere(objects[i]) == there {
			n++
		}
	}
	return n
}

// areInOrder reports whether all objects but the first are in order.
func (w *Writer) areInOrder(objects []Object, first string) bool {
	return !slices.ContainsFunc(objects, func(o Object) bool {
		is, ok := w.view.object(o.Ref())
		return o.Name != first && (!ok || o.differs(is) != "")
	})
}

// mayNotGo reports whether an undesired WorkloadEntry has to wait.
func mayNotGo(wanted []Object, have []Observed, waits func(Observed) wait) bool {
	names := make(map[string]bool, len(wanted))
	for i := range wanted {
		names[wanted[i].Name] = true
	}
	return slices.ContainsFunc(have, func(h Observed) bool {
		return h.Kind == WorkloadEntry && !names[h.Name] && waits(h).reason != ""
	})
}

func workloadsAmong(objects []Object) []Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return o.Kind != WorkloadEntry })
}

// withOthers adds the objects that have other names.
func withOthers(objects, others []Object) []Object {
	named := make(map[Ref]bool, len(objects))
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
