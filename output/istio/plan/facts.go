package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/source"
)

// Facts are everything that a plan depends on beside the API server's objects. The catalog
// is immutable; one goroutine uses Facts.
type Facts struct {
	*catalog.Snapshot
	Complete bool // every source is primed
	// Sources are the written sources of the configuration. Objects of other sources may
	// belong to any source at the start. Any means that every source counts as configured.
	Sources []string
	Any     bool
	Known   *SourceFacts
	// Baseline identifies the API server's objects in the judgements about them. Without one
	// every source is confirmed as soon as it is primed.
	Baseline string

	served map[object.Key]map[uint64]bool // see sockets
}

// SourceFacts is facts about the sources that are not in the catalog. It is immutable.
// Which objects may be deleted is decided by the supervisor of a source, and comes with the
// source's mark in the catalog; see [model.Judgement].
type SourceFacts struct {
	// Restored names the sources with restored records of an earlier process at the start.
	Restored []string
	Left     map[string]bool // sources that were removed from the configuration since the start
}

// Judgement returns the judgement about the API server's objects of a source.
func (f *Facts) Judgement(name string) (model.Judgement, bool) {
	mark, ok := f.Mark(name)
	if !ok {
		return model.Judgement{}, false
	}
	return mark.Judgements.Of(f.Baseline)
}

// SourcesOf returns the sources that may have a part in an object. The object names them. An
// object handed over by its label alone, or of a source that was renamed since this process
// was started, may belong to any source. A source that was removed from the configuration
// since the start has no part any more.
func (f *Facts) SourcesOf(o object.Observed) (names []string, anybody bool) {
	own := o.Sources()
	if len(own) == 0 {
		return f.Sources, true
	}
	for _, name := range own {
		switch {
		case f.Any || slices.Contains(f.Sources, name):
			names = append(names, name)
		case !f.Known.Left[name]:
			anybody = true
		}
	}
	if anybody {
		return f.Sources, true
	}
	return names, false
}

// Wait returns why an object may neither be deleted nor changed.
func (f *Facts) Wait(o object.Observed) Wait {
	if reason := f.Unjudged(o); reason != "" {
		return Wait{Reason: reason}
	}
	return f.missed(o)
}

// Unjudged returns the reason why an object waits; empty if it does not wait.
func (f *Facts) Unjudged(o object.Observed) string {
	names, anybody := f.SourcesOf(o)
	waits := func(name string) bool { return !f.confirmed(name) }
	switch at := slices.IndexFunc(names, waits); {
	case anybody && len(o.Sources()) > 0 && (at >= 0 || !f.Complete):
		return "source " + strings.Join(o.Sources(), ", ") + ", a source of this object, is not configured, and not all other sources have been listed yet"
	case anybody && (at >= 0 || !f.Complete):
		return "its sources are unknown (no annotation isthmus.io/sources), and not all sources have been listed yet"
	case at >= 0:
		return "source " + names[at] + ", a source of this object, has not been listed yet"
	case f.Baseline == "":
		return ""
	}
	for _, name := range names {
		j, _ := f.Judgement(name)
		for _, other := range names {
			if !slices.Contains(j.With, other) {
				return "source " + name + " may have lost some of its records: waits for a listing of source " + other
			}
		}
	}
	return ""
}

// confirmed reports whether missing objects of a source may be deleted, apart from held
// ones.
func (f *Facts) confirmed(name string) bool {
	if f.Baseline != "" {
		_, ok := f.Judgement(name)
		return ok
	}
	return f.Complete || f.Primed(name)
}

// missed returns why an object may not lose endpoints: the loss is suspicious for its
// source.
func (f *Facts) missed(o object.Observed) Wait {
	if f.Baseline == "" {
		return Wait{}
	}
	names, _ := f.SourcesOf(o)
	for _, name := range slices.Sorted(slices.Values(names)) {
		j, _ := f.Judgement(name)
		for _, drop := range j.Held {
			if lost, held := f.lostOf(drop, o); held {
				return Wait{drop.Reason, lost, drop.Since}
			}
		}
	}
	return Wait{}
}

// lostOf counts the held endpoints that an object would lose, and reports whether it would
// lose any held content.
func (f *Facts) lostOf(drop model.HeldDrop, o object.Observed) (lost int, held bool) {
	key := o.About()
	at, found := slices.BinarySearchFunc(drop.Items, SubjectOf(key), compareItems)
	if !found {
		return 0, false
	}
	item, there := drop.Items[at], f.sockets(key)
	for _, socket := range o.Sockets {
		if _, kept := slices.BinarySearch(item.Endpoints, socket); kept && !there[socket] {
			lost++
		}
	}
	return lost, lost > 0 || item.Whole && !f.has(key)
}

func compareItems(a, b model.HeldItem) int {
	ref := func(i model.HeldItem) model.Ref {
		return model.Ref{Kind: i.Kind, Key: model.Key{Namespace: i.Namespace, Name: i.Name}}
	}
	return ref(a).Compare(ref(b))
}

// SubjectOf returns the service or scope of an own object, as a held item.
func SubjectOf(key object.Key) model.HeldItem {
	kind := model.KindService
	if key.Kind == object.Sidecar {
		kind = model.KindScope
	}
	return model.HeldItem{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// has reports whether the catalog has such a service or scope.
func (f *Facts) has(key object.Key) bool {
	if key.Kind == object.Sidecar {
		for scope := range f.Scopes() {
			if translate.ScopeKey(scope) == key {
				return true
			}
		}
		return false
	}
	_, ok := f.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	return ok
}

// sockets returns the sockets of a service, whether or not they can be written. They are
// computed once, because every endpoint of an object may be looked up.
func (f *Facts) sockets(key object.Key) map[uint64]bool {
	found, ok := f.served[key]
	if !ok {
		found = f.findSockets(key)
		if f.served == nil {
			f.served = map[object.Key]map[uint64]bool{}
		}
		f.served[key] = found
	}
	return found
}

func (f *Facts) findSockets(key object.Key) map[uint64]bool {
	service, ok := f.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if !ok || key.Kind != object.ServiceEntry {
		return nil
	}
	found := map[uint64]bool{}
	for _, port := range service.Ports {
		for e := range service.Endpoints(port.Number).All() {
			found[source.Socket(e.Address, e.Network, e.Port)] = true
			found[source.Socket(e.Address, "", e.Port)] = true // an object of before its network was known
		}
	}
	return found
}

// HeldOf returns the number of held drops of a source, the begin and the reason.
func (f *Facts) HeldOf(name string) (drops int, since time.Time, reason string) {
	j, _ := f.Judgement(name)
	if len(j.Held) == 0 {
		return 0, time.Time{}, ""
	}
	return len(j.Held), j.Held[0].Since, j.Held[0].Reason
}
