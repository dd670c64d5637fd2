package catalog

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/immutable"
)

// speaker returns the instance of the claim that speaks for an endpoint, which is the first. If its source is stale,
// the health is that of the claim that would speak among the claims from the first source that is not stale.
func speaker(list []said) *Instance {
	first := list[0]
	if !first.stale {
		return first.Instance
	}
	at := slices.IndexFunc(list, func(s said) bool { return !s.stale })
	if at < 0 {
		return first.Instance
	}
	others := slices.Clone(list[at:])
	speakerFirst(others)
	if others[0].Health == first.Health {
		return first.Instance
	}
	one := *first.Instance
	one.Health = others[0].Health
	return &one
}

// shared reports whether several claims are about one endpoint.
func (e *Endpoints) shared() bool { return e.claims.Len() > e.Total }

// sameHealth reports whether all endpoints have the same health with other stale sources.
func (e *Endpoints) sameHealth(with stale.Sources) bool {
	if !e.shared() || e.stale.Equal(with) {
		return true
	}
	for list := range e.each() {
		was := speaker(list).Health
		for i := range list {
			list[i].stale = with.Has(list[i].Record.Source)
		}
		if speaker(list).Health != was {
			return false
		}
	}
	return true
}

// turn returns the endpoints as they are with other stale sources; e if they are the same.
func (e *Endpoints) turn(stale stale.Sources) *Endpoints {
	if e.sameHealth(stale) {
		return e
	}
	return (&portEdit{stale: stale, claims: e.claims.Edit()}).counted()
}

// turning takes over which sources are stale after a step, once its services are assembled.
type turning struct {
	before   immutable.Map[ServiceKey, *Service] // the step
	touched  map[ServiceKey]*touched
	revision uint64
	at       time.Time
}

// to touches the services of which an endpoint may have another health, and returns the sources that are stale
// now. Only services with endpoints of several records are read, and services that a split divides.
func (t turning) to(was, now stale.Sources) stale.Sources {
	if was.Equal(now) {
		return was
	}
	for key, service := range t.before.All() {
		if t.touched[key] == nil && (service.divided != nil || slices.ContainsFunc(slices.Collect(maps.Values(service.joined)), (*Endpoints).shared)) {
			t.touched[key] = &touched{old: service, now: &Service{ServiceDefinition: service.ServiceDefinition, Revision: t.revision, Changed: t.at, joined: service.joined}}
		}
	}
	for _, one := range t.touched {
		if one.now != nil {
			one.turn(now)
		}
	}
	return now
}

func (t *touched) turn(stale stale.Sources) {
	after := maps.Clone(t.now.joined)
	for number, e := range after {
		if after[number] = e.turn(stale); after[number] != e {
			delete(t.written, number)
		}
	}
	var before map[uint32]*Endpoints
	if t.old != nil {
		before = t.old.joined
	}
	t.now.joined, t.changed = after, compare(before, after)
}
