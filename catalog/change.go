package catalog

import (
	"maps"
	"time"
)

// Change is the exact difference between two snapshots.
type Change struct {
	Services map[ServiceKey]ServiceChange
	// Scopes are the namespaces of which a scope came, went or changed.
	Scopes map[string]struct{}
	// Consumptions are the consumers of which what they use, or who says so, changed.
	Consumptions map[ServiceKey]Replaced[Consumption]
	// Opaques are the objects that are carried and came, went or changed.
	Opaques map[OpaqueKey]Replaced[Opaque]
	// Workloads are those that came, went or changed, whether or not a service selects them.
	Workloads map[WorkloadKey]Replaced[Workload]
	// Primed is set when another source has delivered its first listing, or the
	// mark of one is gone.
	Primed bool
	// Judged is set when something was decided about what others hold of a source.
	Judged bool
	// Waited is set by the gate while every required source is primed and the others were
	// waited for as long as they are. It is of the snapshot that the change leads to.
	Waited bool
	// Observed and Committed are those of the oldest commit in the change; zero if unknown.
	Observed, Committed time.Time
}

// ServiceChange is what happened to one service. Old is nil for a new one, and
// New for one that is gone. The definition changed if the two Definition
// pointers differ, and the endpoints of a port if its Endpoints pointers do.
type ServiceChange struct {
	Old, New *Service
	// Endpoints are those which appeared, disappeared or changed.
	Endpoints map[EndpointID]struct{}
}

// Replaced is what happened to one value. Old is nil for a new one, and New for
// one that is gone.
type Replaced[V any] struct{ Old, New *V }

// Empty reports whether nothing changed.
func (c Change) Empty() bool {
	return len(c.Services) == 0 && len(c.Scopes) == 0 && len(c.Consumptions) == 0 && len(c.Opaques) == 0 &&
		len(c.Workloads) == 0 && !c.Primed && !c.Judged
}

// Then returns the change that c and, after it, next amount to. It may reuse
// the maps of c, but not those of next, which other readers may hold. The
// result never speaks of a service or an endpoint that neither of them did; of
// what changed and changed back it does.
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
	c.Consumptions, c.Opaques = then(c.Consumptions, next.Consumptions), then(c.Opaques, next.Opaques)
	c.Workloads = then(c.Workloads, next.Workloads)
	c.Primed, c.Judged = c.Primed || next.Primed, c.Judged || next.Judged
	c.Observed, c.Committed = oldest(c.Observed, next.Observed), oldest(c.Committed, next.Committed)
	return c
}

// then returns what the replacements of earlier and, after them, those of later
// amount to. It may reuse earlier, but not later. What came and went is left out.
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
