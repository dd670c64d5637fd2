package istio

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// changed compares the desired and existing objects of a service, restricted to objects
// that may have changed since the last reconciliation: all others are in order. It reports
// false if the whole service has to be compared.
func (w *Writer) changed(world *world, key Key) (t Translation, actions []Action, ok bool) {
	one := w.followed.of(key)
	service, there := world.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if one == nil || !there || !w.isInForm(key, service, one.placement.Selects()) {
		return Translation{}, nil, false
	}
	addresses, known := w.followed.catchUp(one, one.placement.Service(), service)
	if !known {
		return Translation{}, nil, false
	}
	changed, ok := one.placement.Update(service, addresses, w.exists(key))
	if !ok {
		return Translation{}, nil, false
	}
	open := w.followed.take(one)
	defer func() {
		if !ok { // also after a panic, when the open objects are unknown
			w.followed.forget(key)
		}
	}()
	ok = false
	for name := range changed {
		open[Ref{name.Kind, key.Namespace, name.Name}] = struct{}{}
	}
	t = Translation{LeftOut: one.placement.LeftOut(), Objects: w.config.followedObjects(w.options.Instance, one, open), partly: true}
	have, ok := w.followedHave(key, one, open, t.Objects)
	if !ok {
		return Translation{}, nil, false
	}
	actions = plan(t.Objects, have, w.waits(world))
	w.followed.leave(one, actions)
	return t, actions, true
}

// isInForm reports whether a service has its form, and should keep it.
func (w *Writer) isInForm(key Key, s *catalog.Service, selects bool) bool {
	_, is := w.selects(key)
	return is == selects && w.config.isWorkloads(s, selects) == selects
}

// followedObjects returns the desired objects among some names.
func (c Config) followedObjects(instance string, one *followed, open map[Ref]struct{}) []Object {
	names := make([]compose.PartName, 0, len(open))
	for ref := range open {
		names = append(names, compose.PartName{Kind: ref.Kind, Name: ref.Name})
	}
	objects := make([]Object, 0, len(open))
	for _, p := range one.placement.Parts(names) {
		o := objectOfPart(instance, one.placement.Service(), p)
		o.Spec = p.Spec()
		o.print = printOf(o.Spec)
		objects = append(objects, o)
	}
	return objects
}

// followedHave returns the existing objects among some names. It reports false if an object
// is not desired, and the reason may be more than a removed endpoint.
func (w *Writer) followedHave(key Key, one *followed, open map[Ref]struct{}, wanted []Object) ([]Observed, bool) {
	named, is := compose.NamedAfter(key.Name), make(map[Ref]bool, len(wanted))
	for i := range wanted {
		is[wanted[i].Ref()] = true
	}
	have := make([]Observed, 0, len(open))
	for _, ref := range slices.SortedFunc(maps.Keys(open), Ref.compare) {
		o, there := w.view.object(ref)
		switch {
		case !there, !is[ref] && o.key() != key:
			continue
		case !is[ref] && (!named(ref.Name) || ref.Kind == WorkloadEntry && !one.placement.Selects()):
			return nil, false
		}
		have = append(have, o)
	}
	return have, true
}
