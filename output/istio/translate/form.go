// Package translate makes the desired objects of the catalog's services and scopes, in one of
// two forms. It has pure functions only: no I/O, no clock, no state.
package translate

import (
	"cmp"
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// Settings are the part of the configuration that decides the form of the objects.
type Settings struct {
	Instance  string // marks the objects
	ShardSize int
	Endpoints Form
	Sidecars  bool
	Shares    Shares
	// RootNamespace is Istio's: its DestinationRules are for clients of every namespace.
	RootNamespace string
	// Above is the size from which [Auto] counts a service as large; zero means 1000.
	Above int
}

// Form is how the endpoints of a service are written.
type Form string

// The forms. With WorkloadEntry objects, a change of one endpoint writes one small object;
// inline, changes of the whole service cost less.
const (
	Inline          Form = "inline"
	WorkloadEntries Form = "workloadEntries"
	Auto            Form = "auto" // by the size of the service
)

// Under [Auto], a service has the second form above autoAbove endpoints, and keeps it until
// there are fewer than half of that. Registered endpoints count, healthy or not. The gap
// prevents a service from moving back and forth, because a move writes each endpoint once.
// In a large service single endpoints change often, and the whole seldom does.
const autoAbove = 1000

// IsWorkloads reports whether a service is to be written with WorkloadEntries. now is
// whether it currently is.
func (c Settings) IsWorkloads(s *catalog.Service, now bool) bool {
	return c.Endpoints.isWorkloads(s, now, cmp.Or(c.Above, autoAbove))
}

// Validate returns an error if the form is unknown.
func (f Form) Validate() error {
	switch f {
	case Inline, WorkloadEntries, Auto:
		return nil
	default:
		return fmt.Errorf("endpoints: %q is none of inline (default), workloadEntries, auto", string(f))
	}
}

// mayBeWorkloads reports whether a service may be written with WorkloadEntries.
func (f Form) mayBeWorkloads() bool { return f == WorkloadEntries || f == Auto }

func (f Form) isWorkloads(s *catalog.Service, now bool, above int) bool {
	switch {
	case !f.mayBeWorkloads() || !compose.TakesWorkloads(s):
		return false
	case f == WorkloadEntries:
		return true
	case now:
		return Registered(s) >= above/2
	default:
		return Registered(s) > above
	}
}

// Registered returns the largest number of endpoints of a service's port.
func Registered(s *catalog.Service) (most int) {
	for _, port := range s.Ports {
		if e := s.Endpoints(port.Number); e != nil {
			most = max(most, e.Total)
		}
	}
	return most
}
