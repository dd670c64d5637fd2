package istio

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// concerned returns the keys that a change from one snapshot to the next affects.
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

// keys returns every key with a desired or an existing object.
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

// desired returns the desired objects of a key with existing objects have.
func (w *Writer) desired(world *world, key Key, have []Observed) Translation {
	if key.Kind == Sidecar {
		return w.config.sidecars(w.options.Instance, world.Snapshot, key)
	}
	service, ok := world.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if !ok || service.Traffic.ClusterLocal { // each cluster has its own
		w.known.keep(key, nil)
		w.settling.forget(key)
		return Translation{}
	}
	return w.serviceObjects(key, service, have, w.waits(world))
}

// waits returns a function with the reason why an object may neither be deleted nor
// changed.
func (w *Writer) waits(world *world) func(Observed) wait {
	return func(o Observed) wait {
		if reason := w.unjudged(world, o); reason != "" {
			return wait{reason: reason}
		}
		return w.missed(world, o)
	}
}

// actions compares the desired and existing objects of a key, if possible only the ones
// that may have changed.
func (w *Writer) actions(world *world, key Key) (Translation, []Action) {
	if w.config.isRetired(key.Kind) {
		return Translation{}, removed(w.view.of(key))
	}
	if t, actions, ok := w.changed(world, key); ok {
		return t, actions
	}
	service, ok := world.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if key.Kind != ServiceEntry || w.rehearses || !ok || registered(service) < worthKnowing {
		w.followed.forget(key)
		return w.whole(world, key)
	}
	one := w.followed.begin(key)
	t, actions := w.whole(world, key)
	w.follow(key, one, t, actions)
	return t, actions
}

// follow starts following a service after a complete comparison.
func (w *Writer) follow(key Key, one *followed, t Translation, actions []Action) {
	if t.draft == nil {
		w.followed.forget(key)
		return
	}
	if placement := t.draft.Placement(); placement == nil {
		w.followed.forget(key)
	} else {
		w.followed.settle(one, placement, actions)
		w.known.keep(key, nil) // one cache is enough
	}
}

// whole compares all desired objects of a key with all existing ones.
func (w *Writer) whole(world *world, key Key) (Translation, []Action) {
	named, all := compose.NamedAfter(key.Name), w.view.of(key)
	have := slices.DeleteFunc(all, func(o Observed) bool { return !named(o.Name) && w.leftToOwner(world, key, o) })
	t := w.desired(world, key, have)
	if len(have) < len(all) {
		t.draft = nil // only a complete comparison detects changes of the skipped objects
	}
	known := make(map[Ref]bool, len(have))
	for i := range have {
		known[have[i].Ref] = true
	}
	for i := range t.Objects { // objects that have lost the annotation with their key
		ref := t.Objects[i].Ref()
		if known[ref] {
			continue
		}
		if h, ok := w.view.object(ref); ok {
			have = append(have, h)
		}
	}
	return t, plan(t.Objects, have, w.waits(world))
}

// leftToOwner reports whether another key than the annotated one wants an object. It was
// handed over without the annotation, or another writer has changed it. Its owner, which
// restores the annotation, is enqueued.
func (w *Writer) leftToOwner(world *world, key Key, o Observed) bool {
	if key.Kind != ServiceEntry {
		return false
	}
	for service := range world.Services() {
		if service.Key.Namespace != o.Namespace || !compose.NamedAfter(service.Key.Host)(o.Name) {
			continue
		}
		owner := Key{ServiceEntry, o.Namespace, service.Key.Host}
		wanted := w.desired(world, owner, w.view.of(owner)).Objects
		if slices.ContainsFunc(wanted, func(wanted Object) bool { return wanted.Ref() == o.Ref }) {
			w.enqueue(controller.High, []Key{owner})
			return true
		}
	}
	return false
}
