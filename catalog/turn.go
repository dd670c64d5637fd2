package catalog

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/stale"
)

// speaker returns the instance of the claim that speaks for an endpoint, which is the first. If its source is stale,
// the health is that of the first claim by another source that is not.
func speaker(list []said) *Instance {
	first := list[0]
	if !first.stale {
		return first.Instance
	}
	at := slices.IndexFunc(list, func(s said) bool { return !s.stale })
	if at < 0 || list[at].Health == first.Health {
		return first.Instance
	}
	one := *first.Instance
	one.Health = list[at].Health
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

// turn takes over which sources are stale, once the services are assembled. Only services with endpoints of
// several records are read.
func (s *step) turn(revision uint64) {
	if s.stale.Equal(s.turned) {
		return
	}
	s.stale = s.turned
	for key, service := range s.snapshot.services.All() {
		if s.touched[key] == nil && slices.ContainsFunc(slices.Collect(maps.Values(service.joined)), (*Endpoints).shared) {
			now := &Service{ServiceDefinition: service.ServiceDefinition, Revision: revision, Changed: s.committed, joined: service.joined}
			s.touched[key] = &touched{old: service, now: now, changed: map[EndpointID]struct{}{}}
		}
	}
	for _, t := range s.touched {
		if t.now != nil {
			t.turn(s.stale)
		}
	}
}

func (t *touched) turn(stale stale.Sources) {
	after := maps.Clone(t.now.joined)
	for number, e := range after {
		if after[number] = e.turn(stale); after[number] != e {
			delete(t.written, number)
		}
	}
	if sameEndpoints(after, t.now.joined) {
		return
	}
	var before map[uint32]*Endpoints
	if t.old != nil {
		before = t.old.joined
	}
	t.now.joined, t.changed = after, compare(before, after)
}
