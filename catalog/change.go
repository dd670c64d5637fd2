package catalog

import (
	"maps"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog/united"
)

// Change is the exact difference between two snapshots.
type Change struct {
	Services map[ServiceKey]ServiceChange
	// Scopes are the namespaces in which a scope was added, removed or changed.
	Scopes map[string]struct{}
	// Opaques are the carried objects that were added, removed or changed.
	Opaques map[OpaqueKey]Replaced[Opaque]
	// Workloads are the added, removed or changed workloads, whether or not a service selects
	// them.
	Workloads map[WorkloadKey]Replaced[Workload]
	// Primed is set when another source has delivered its first listing, or the
	// mark of one is gone.
	Primed bool
	// Judged is set when a judgement about the objects of a source in another system changed.
	Judged bool
	// Waited is set by the gate for the snapshot that the change leads to. Every required
	// source is primed, and the wait for the other sources has ended.
	Waited bool
	// Observed and Committed are the times of the oldest commit in the change; zero if
	// unknown.
	Observed, Committed time.Time
}

// ServiceChange is the change of one service. Old is nil for a new one, and New for a
// removed one. The definition changed if the two Definition pointers differ, and the
// endpoints of a port if its Endpoints pointers do.
type ServiceChange struct {
	Old, New *Service
	// Endpoints are the endpoints that appeared, disappeared or changed.
	Endpoints map[EndpointID]struct{}
}

// Replaced is the change of one value. Old is nil for a new one, and New for a removed one.
type Replaced[V any] = united.Replaced[V]

// Empty reports whether nothing changed.
func (c Change) Empty() bool {
	return len(c.Services) == 0 && len(c.Scopes) == 0 && len(c.Opaques) == 0 &&
		len(c.Workloads) == 0 && !c.Primed && !c.Judged
}

// Then returns the union of c and the later change next. It may reuse the maps of c, but
// not the maps of next, which other readers may hold. The result contains no service or
// endpoint that is in neither. It does contain services that changed and changed back.
func (c Change) Then(next Change) Change {
	if c.Empty() {
		c.Observed, c.Committed = time.Time{}, time.Time{}
	}
	if c.Services == nil {
		c.Services = make(map[ServiceKey]ServiceChange, len(next.Services))
	}
	for key, later := range next.Services {
		earlier, ok := c.Services[key]
		switch {
		case !ok:
			later.Endpoints = maps.Clone(later.Endpoints)
			c.Services[key] = later
		case earlier.Old == nil && later.New == nil:
			delete(c.Services, key) // came and went
		case earlier.Endpoints == nil:
			c.Services[key] = ServiceChange{earlier.Old, later.New, maps.Clone(later.Endpoints)}
		default:
			maps.Copy(earlier.Endpoints, later.Endpoints)
			c.Services[key] = ServiceChange{earlier.Old, later.New, earlier.Endpoints}
		}
	}
	if c.Scopes == nil {
		c.Scopes = map[string]struct{}{}
	}
	maps.Copy(c.Scopes, next.Scopes)
	c.Opaques = then(c.Opaques, next.Opaques)
	c.Workloads = then(c.Workloads, next.Workloads)
	c.Primed, c.Judged = c.Primed || next.Primed, c.Judged || next.Judged
	c.Observed, c.Committed = oldest(c.Observed, next.Observed), oldest(c.Committed, next.Committed)
	return c
}

// then returns the union of earlier replacements and later ones. It may reuse earlier, but
// not later. A value that came and went is left out.
func then[K comparable, V any](earlier, later map[K]Replaced[V]) map[K]Replaced[V] {
	if earlier == nil {
		return maps.Clone(later)
	}
	for key, r := range later {
		if before, ok := earlier[key]; ok {
			r.Old = before.Old
		}
		if r.Old == nil && r.New == nil {
			delete(earlier, key)
			continue
		}
		earlier[key] = r
	}
	return earlier
}

func oldest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
