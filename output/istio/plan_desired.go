package istio

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/controller"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// concerned returns the keys that a change from one snapshot to the next is about.
func (w *Writer) concerned(before, s *catalog.Snapshot, c catalog.Change) []Key {
	keys := make([]Key, 0, len(c.Services))
	for key := range c.Services {
		keys = append(keys, Key{ServiceEntry, key.Namespace, key.Host})
	}
	if w.config.Sidecars && len(c.Scopes) > 0 {
		for _, world := range []*catalog.Snapshot{before, s} { // there are few scopes
			for scope := range world.Scopes() {
				if _, changed := c.Scopes[scope.Record.Namespace]; changed {
					keys = append(keys, scopeKey(scope))
				}
			}
		}
	}
	return keys
}

// keys returns every key there is to look at: what there should be, and what
// there is.
func (w *Writer) keys() []Key {
	world := w.newest.Load()
	all := w.view.keys()
	for service := range world.Services() {
		all[Key{ServiceEntry, service.Key.Namespace, service.Key.Host}] = struct{}{}
	}
	if w.config.Sidecars {
		for scope := range world.Scopes() {
			all[scopeKey(scope)] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b Key) int {
		return Ref(a).compare(Ref(b))
	})
}

// desired returns what there should be of a key.
func (w *Writer) desired(world *world, key Key) Translation {
	if key.Kind == Sidecar {
		return w.config.sidecars(w.options.Instance, world.Snapshot, key)
	}
	service, ok := world.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if !ok {
		w.known.keep(key, nil)
		return Translation{}
	}
	return w.translate(key, service, func(name string) bool {
		_, ok := w.view.object(Ref{key.Kind, key.Namespace, name})
		return ok
	})
}

// actions compares what there should be of a key with what there is.
func (w *Writer) actions(world *world, key Key) (Translation, []Action) {
	if w.config.isRetired(key.Kind) {
		return Translation{}, removed(w.view.of(key))
	}
	t := w.desired(world, key)
	have := slices.DeleteFunc(w.view.of(key), func(o Observed) bool { return w.leftToOwner(world, key, o) })
	for _, o := range t.Objects { // those that have lost the annotation by which they are found
		if h, ok := w.view.object(o.Ref()); ok && !slices.ContainsFunc(have, func(known Observed) bool { return known.Ref == h.Ref }) {
			have = append(have, h)
		}
	}
	return t, plan(t.Objects, have, func(o Observed) wait {
		if reason := w.unjudged(world, o); reason != "" {
			return wait{reason: reason}
		}
		return w.missed(world, o)
	})
}

// leftToOwner reports whether an object is wanted by another key than the one
// that its annotation leads to. It was handed over without the annotation, or
// somebody has changed it: its owner restores that, and is woken for it.
func (w *Writer) leftToOwner(world *world, key Key, o Observed) bool {
	if key.Kind != ServiceEntry || convert.IsNamedAfter(o.Name, key.Name) {
		return false
	}
	for service := range world.Services() {
		if service.Key.Namespace != o.Namespace || !convert.IsNamedAfter(o.Name, service.Key.Host) {
			continue
		}
		owner := Key{ServiceEntry, o.Namespace, service.Key.Host}
		if slices.ContainsFunc(w.desired(world, owner).Objects, func(wanted Object) bool { return wanted.Name == o.Name }) {
			w.enqueue(controller.High, []Key{owner})
			return true
		}
	}
	return false
}
