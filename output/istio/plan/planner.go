// Package plan compares desired and observed objects, and returns the actions with reasons.
//
// [Compare] is a pure function of the desired objects, the observed objects and [Facts]. A
// [Planner] adds state that saves work in large services, and never changes a plan. The
// package does no I/O.
package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
)

// Planner plans the actions on the objects of single keys. It keeps the state of large
// services between plans, and a plan with that state equals a plan without it. All methods
// may be called from any goroutine, and one goroutine at a time plans a key.
type Planner struct {
	settings translate.Settings
	stored   *observed.Objects
	waits    Waits
	memory   memory
}

// New returns a planner for own objects. Each lasting stage of a move lasts for long.
func New(c translate.Settings, stored *observed.Objects, long time.Duration) *Planner {
	return &Planner{settings: c, stored: stored, waits: Waits{Long: long}}
}

// Rehearse has all plans from now on lead to the final form at once.
func (p *Planner) Rehearse() { p.waits.Final = true }

// Plan is the actions on the objects of a key, and the translation that they are based on.
type Plan struct {
	translate.Translation
	Actions []Action
	// Owners are other keys that want objects of this one.
	Owners []object.Key
}

// Published records a change of the catalog, before any plan can see it.
func (p *Planner) Published(change catalog.Change) { p.memory.published(change) }

// Seen records that an object has changed in the API server.
func (p *Planner) Seen(o *object.Observed) { p.memory.seen(o) }

// EndTerm forgets the followed services: without a term their changes are not tracked.
func (p *Planner) EndTerm() { p.memory.end() }

// Plan compares the desired and existing objects of a key, if possible only the ones that
// may have changed.
func (p *Planner) Plan(f *Facts, key object.Key) Plan {
	if reason := p.settings.WhyRetired(key.Kind); reason != "" {
		return Plan{Actions: retired(p.stored.Of(key), reason)}
	}
	if changed, ok := p.changed(f, key); ok {
		return changed
	}
	service, ok := serviceOf(f, key)
	if key.Kind != object.ServiceEntry || p.waits.Final || !ok || translate.Registered(service) < worthKnowing {
		p.memory.forget(key)
		return p.whole(f, key)
	}
	one := p.memory.begin(key)
	whole := p.whole(f, key)
	if whole.Draft == nil {
		p.memory.forget(key)
		return whole
	}
	if placement := whole.Draft.Placement(); placement == nil {
		p.memory.forget(key)
	} else {
		p.memory.settle(key, one, placement, whole.Actions)
	}
	return whole
}

// serviceOf returns the service of a key; nil if there is none.
func serviceOf(f *Facts, key object.Key) (*catalog.Service, bool) {
	return f.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
}

// retired deletes objects of a kind that is no longer written. That waits for no source,
// because an operator has decided it.
func retired(have []object.Observed, reason string) []Action {
	actions := Compare(nil, have, func(object.Observed) Wait { return Wait{} })
	for i := range actions {
		actions[i].Reason = reason
	}
	return actions
}

// desired returns the desired objects of a key with existing objects have.
func (p *Planner) desired(f *Facts, key object.Key, have []object.Observed) translate.Translation {
	if key.Kind == object.Sidecar {
		return p.settings.Scope(f.Snapshot, key)
	}
	service, ok := serviceOf(f, key)
	if key.Kind == object.DestinationRule {
		if !translate.HasRule(service) {
			return translate.Translation{}
		}
		return translate.RuleOf(p.settings, service, p.stored.OtherRules())
	}
	if !ok || service.Traffic.ClusterLocal { // each cluster has its own
		p.memory.keep(key, nil)
		p.waits.Forget(key)
		return translate.Translation{}
	}
	held := func(o object.Observed) bool { return f.Wait(o).Reason != "" }
	t := next(p.settings, service, existing{key, have, p.stored}, held, p.memory.partsOf(key), &p.waits)
	p.memory.keep(key, t.Parts)
	return t
}

// whole compares all desired objects of a key with all existing ones.
func (p *Planner) whole(f *Facts, key object.Key) Plan {
	named, all := compose.NamedAfter(key.Name), p.stored.Of(key)
	var owners []object.Key
	have := slices.DeleteFunc(all, func(o object.Observed) bool {
		if named(o.Name) {
			return false
		}
		owner, other := p.owner(f, key, o)
		if other {
			owners = append(owners, owner)
		}
		return other
	})
	t := p.desired(f, key, have)
	if len(owners) > 0 {
		t.Draft = nil // only a complete comparison detects changes of the skipped objects
	}
	known := make(map[object.Ref]bool, len(have))
	for i := range have {
		known[have[i].Ref] = true
	}
	for i := range t.Objects { // objects that have lost the annotation with their key
		ref := t.Objects[i].Ref()
		if known[ref] {
			continue
		}
		if h, ok := p.stored.Object(ref); ok {
			have = append(have, h)
		}
	}
	actions := Compare(t.Objects, have, f.Wait)
	for i := range actions {
		if actions[i].Verb == Delete && t.Invalid != "" {
			actions[i].Reason = t.Invalid
		}
	}
	return Plan{t, actions, owners}
}

// owner returns another key than the annotated one that wants an object. The object was
// handed over without the annotation, or another writer has changed it. The owner restores
// the annotation.
func (p *Planner) owner(f *Facts, key object.Key, o object.Observed) (object.Key, bool) {
	if key.Kind != object.ServiceEntry {
		return object.Key{}, false
	}
	for service := range f.Services() {
		if service.Key.Namespace != o.Namespace || !compose.NamedAfter(service.Key.Host)(o.Name) {
			continue
		}
		owner := object.Key{Kind: object.ServiceEntry, Namespace: o.Namespace, Name: service.Key.Host}
		wanted := p.desired(f, owner, p.stored.Of(owner)).Objects
		if slices.ContainsFunc(wanted, func(wanted object.Object) bool { return wanted.Ref() == o.Ref }) {
			return owner, true
		}
	}
	return object.Key{}, false
}

// changed compares the desired and existing objects of a service, restricted to objects
// that may have changed since the last plan: all others are in order. It reports false if
// the whole service has to be compared.
func (p *Planner) changed(f *Facts, key object.Key) (done Plan, ok bool) {
	one := p.memory.of(key)
	service, there := serviceOf(f, key)
	if one == nil || !there || !p.isInForm(key, service, one.placement.Selects()) {
		return Plan{}, false
	}
	addresses, known := p.memory.catchUp(one, one.placement.Service(), service)
	if !known {
		return Plan{}, false
	}
	changed, ok := one.placement.Update(service, addresses, p.stored.Exists(key))
	if !ok {
		return Plan{}, false
	}
	open := p.memory.take(one)
	defer func() {
		if !ok { // also after a panic, when the open objects are unknown
			p.memory.forget(key)
		}
	}()
	ok = false
	for name := range changed {
		open[object.Ref{Kind: name.Kind, Namespace: key.Namespace, Name: name.Name}] = struct{}{}
	}
	t := translate.Translation{LeftOut: one.placement.LeftOut(), Objects: p.settings.Some(one.placement, open), Partly: true}
	have, ok := openObjects(p.stored, key, one, open, t.Objects)
	if !ok {
		return Plan{}, false
	}
	actions := Compare(t.Objects, have, f.Wait)
	p.memory.leave(one, actions)
	return Plan{Translation: t, Actions: actions}, true
}

// isInForm reports whether a service has its form, and should keep it.
func (p *Planner) isInForm(key object.Key, s *catalog.Service, selects bool) bool {
	is := presenceOf(p.settings, key, p.stored)
	return is.selects == selects && p.settings.IsWorkloads(s, selects) == selects
}

// openObjects returns the existing objects among some names. It reports false if an object
// is not desired, and the reason may be more than a removed endpoint.
func openObjects(stored *observed.Objects, key object.Key, one *followed, open map[object.Ref]struct{}, wanted []object.Object) ([]object.Observed, bool) {
	named, is := compose.NamedAfter(key.Name), make(map[object.Ref]bool, len(wanted))
	for i := range wanted {
		is[wanted[i].Ref()] = true
	}
	have := make([]object.Observed, 0, len(open))
	for _, ref := range slices.SortedFunc(maps.Keys(open), object.Ref.Compare) {
		o, there := stored.Object(ref)
		switch {
		case !there, !is[ref] && o.Key() != key:
			continue
		case !is[ref] && (!named(ref.Name) || ref.Kind == object.WorkloadEntry && !one.placement.Selects()):
			return nil, false
		}
		have = append(have, o)
	}
	return have, true
}

// HandedOver returns the object that a hand-over of an existing object would lead to.
func (p *Planner) HandedOver(f *Facts, a Action, existing object.Observed) object.Object {
	key := a.Key()
	s, ok := serviceOf(f, key)
	if a.Kind != object.ServiceEntry || !ok {
		return a.Want
	}
	in := translate.InUse{Exists: p.stored.Exists(key), Ports: existing.KeptNames()}
	t := p.settings.Service(s, p.settings.IsWorkloads(s, false), in, nil)
	for _, o := range t.Objects {
		if o.Ref() == a.Ref {
			return o.Whole()
		}
	}
	return a.Want
}
