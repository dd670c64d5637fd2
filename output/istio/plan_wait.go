package istio

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// sourceFacts is facts about the sources that are not in the catalog. It is immutable.
// Which objects may be deleted is decided by the supervisor of a source, and comes with the
// source's mark in the catalog; see [model.Judgement].
type sourceFacts struct {
	restored []string        // sources; see [Options]
	left     map[string]bool // sources that were removed from the configuration since the start
}

// judgement returns the judgement about the API server's objects of a source.
func (w *Writer) judgement(world *world, name string) (model.Judgement, bool) {
	mark, ok := world.Mark(name)
	if !ok {
		return model.Judgement{}, false
	}
	return mark.Judgements.Of(w.baseline)
}

// speakers returns the sources that may have a part in an object. The object names them. An
// object handed over by its label alone, or of a source that was renamed since this process
// was started, may belong to any source. A source that was removed from the configuration
// since the start has no part any more.
func (w *Writer) speakers(world *world, o Observed) (names []string, anybody bool) {
	own := o.sources()
	if len(own) == 0 {
		return w.sources(), true
	}
	for _, name := range own {
		switch {
		case w.isConfigured(name):
			names = append(names, name)
		case !world.sourceFacts.left[name]:
			anybody = true
		}
	}
	if anybody {
		return w.sources(), true
	}
	return names, false
}

// sources returns the written sources.
func (w *Writer) sources() []string {
	if w.options.Sources == nil {
		return nil
	}
	return w.options.Sources()
}

func (w *Writer) isConfigured(source string) bool {
	return w.options.Sources == nil || slices.Contains(w.options.Sources(), source)
}

// unjudged returns the reason why an object waits; empty if it does not wait.
func (w *Writer) unjudged(world *world, o Observed) string {
	names, anybody := w.speakers(world, o)
	waits := func(name string) bool { return !w.confirmed(world, name) }
	switch at := slices.IndexFunc(names, waits); {
	case anybody && len(o.sources()) > 0 && (at >= 0 || !world.complete):
		return "source " + strings.Join(o.sources(), ", ") + ", which it is made of, is not configured, and not all of the others have been listed yet"
	case anybody && (at >= 0 || !world.complete):
		return "it does not say which sources it is made of, and not all of them have been listed yet"
	case at >= 0:
		return "source " + names[at] + ", which it is made of, has not been listed yet"
	case w.options.Judge == nil:
		return ""
	}
	for _, name := range names {
		j, _ := w.judgement(world, name)
		for _, other := range names {
			if !slices.Contains(j.With, other) {
				return "what source " + name + " may have lost of it is compared with what source " + other + " lists"
			}
		}
	}
	return ""
}

// confirmed reports whether missing objects of a source may be deleted, apart from held
// ones.
func (w *Writer) confirmed(world *world, name string) bool {
	if w.options.Judge != nil {
		_, ok := w.judgement(world, name)
		return ok
	}
	return world.complete || world.Primed(name)
}

// missed returns why an object may not lose endpoints: the loss is suspicious for its
// source.
func (w *Writer) missed(world *world, o Observed) wait {
	if w.options.Judge == nil {
		return wait{}
	}
	names, _ := w.speakers(world, o)
	for _, name := range slices.Sorted(slices.Values(names)) {
		j, _ := w.judgement(world, name)
		for _, drop := range j.Held {
			if lost, held := lostOf(drop, world, o); held {
				return wait{drop.Reason, lost, drop.Since}
			}
		}
	}
	return wait{}
}

// lostOf counts the held endpoints that an object would lose, and reports whether it would
// lose any held content.
func lostOf(drop model.HeldDrop, world *world, o Observed) (lost int, held bool) {
	key := o.about()
	at, found := slices.BinarySearchFunc(drop.Items, subjectOf(key), compareItems)
	if !found {
		return 0, false
	}
	item, there := drop.Items[at], world.sockets(key)
	for _, socket := range o.sockets {
		if _, kept := slices.BinarySearch(item.Endpoints, socket); kept && !there[socket] {
			lost++
		}
	}
	return lost, lost > 0 || item.Whole && !world.has(key)
}

func compareItems(a, b model.HeldItem) int {
	ref := func(i model.HeldItem) model.Ref {
		return model.Ref{Kind: i.Kind, Key: model.Key{Namespace: i.Namespace, Name: i.Name}}
	}
	return ref(a).Compare(ref(b))
}

// subjectOf returns the service or scope of an own object, as a held item.
func subjectOf(key Key) model.HeldItem {
	kind := model.KindService
	if key.Kind == Sidecar {
		kind = model.KindScope
	}
	return model.HeldItem{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// has reports whether the catalog has such a service or scope.
func (w *world) has(key Key) bool {
	if key.Kind == Sidecar {
		for scope := range w.Scopes() {
			if scopeKey(scope) == key {
				return true
			}
		}
		return false
	}
	_, ok := w.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	return ok
}

// sockets returns the sockets of a service, whether or not they can be written. They are
// computed once, because every endpoint of an object may be looked up.
func (w *world) sockets(key Key) map[uint64]bool {
	found, ok := w.served[key]
	if !ok {
		found = w.findSockets(key)
		w.served[key] = found
	}
	return found
}

func (w *world) findSockets(key Key) map[uint64]bool {
	service, ok := w.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if !ok || key.Kind != ServiceEntry {
		return nil
	}
	found := map[uint64]bool{}
	for _, port := range service.Ports {
		for e := range service.Endpoints(port.Number).All() {
			found[source.Socket(e.Address, e.Network, e.Port)] = true
		}
	}
	return found
}

// heldOf returns the number of held drops of a source, the begin and the reason.
func (w *Writer) heldOf(world *world, name string) (drops int, since time.Time, reason string) {
	j, _ := w.judgement(world, name)
	if len(j.Held) == 0 {
		return 0, time.Time{}, ""
	}
	return len(j.Held), j.Held[0].Since, j.Held[0].Reason
}
