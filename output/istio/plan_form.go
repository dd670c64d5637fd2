package istio

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

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

// isWorkloads reports whether a service is to be written with WorkloadEntries. now is
// whether it currently is.
func (c Config) isWorkloads(s *catalog.Service, now bool) bool {
	return c.Endpoints.isWorkloads(s, now, cmp.Or(c.above, autoAbove))
}

func (f Form) validate() error {
	switch f {
	case Inline, WorkloadEntries, Auto:
		return nil
	default:
		return fmt.Errorf("endpoints: %q is not a form: use inline, which is the default, workloadEntries or auto", string(f))
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
		return registered(s) >= above/2
	default:
		return registered(s) > above
	}
}

// registered returns the largest number of endpoints of a service's port.
func registered(s *catalog.Service) (most int) {
	for _, port := range s.Ports {
		if e := s.Endpoints(port.Number); e != nil {
			most = max(most, e.Total)
		}
	}
	return most
}

// stage is a step of the move from one form to the other. Each stage is safe whether or not
// the next write succeeds. One write changes the ServiceEntry from endpoints to a selector,
// or back, and its new endpoints exist before that.
type stage int

const (
	allInline   stage = iota // endpoints in ServiceEntries
	bothInline               // and WorkloadEntries that nothing selects
	bothSelects              // WorkloadEntries that the first ServiceEntry selects, and the other ServiceEntries in their inline form
	allSelects               // WorkloadEntries alone
)

// present is the existing objects of a service that matter for its form.
type present struct {
	first     bool // the first ServiceEntry
	selects   bool // and it selects our WorkloadEntries
	workloads int  // of any
	lacks     int  // missing WorkloadEntries
	others    bool // the other ServiceEntries of the inline form are in order
	held      bool // an undesired WorkloadEntry must not be deleted yet
}

// next returns the next stage of a service on its way to a form, and whether the stage must
// last for a while. An istiod follows ServiceEntries and WorkloadEntries by two watches,
// and one of them may lag.
func (p present) next(toWorkloads bool) (s stage, lasts bool) {
	switch {
	case toWorkloads && (p.selects || !p.first && p.lacks <= atATime):
		return allSelects, false
	case toWorkloads:
		return bothInline, p.lacks == 0
	case p.selects && (!p.others || p.held):
		return bothSelects, false
	case p.selects:
		return bothInline, false
	case p.workloads > 0:
		return bothInline, true
	default:
		return allInline, false
	}
}

// over returns the stage after one that has lasted.
func over(toWorkloads bool) stage {
	if toWorkloads {
		return bothSelects
	}
	return allInline
}

// settleFor is how long a lasting stage lasts: far longer than the lag of a healthy istiod,
// and negligible beside the writes of a move.
const settleFor = 5 * time.Second

// settling records since when moving services are in a lasting stage.
type settling struct {
	mu  sync.Mutex
	all map[Key]lasting
}

type lasting struct {
	toWorkloads bool
	since       time.Time
}

// remains returns how much longer a stage has to last.
func (s *settling) remains(key Key, toWorkloads bool, long time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.all[key]
	if !ok || at.toWorkloads != toWorkloads {
		at = lasting{toWorkloads, now}
		if s.all == nil {
			s.all = map[Key]lasting{}
		}
		s.all[key] = at
	}
	return max(long-now.Sub(at.since), 0)
}

func (s *settling) forget(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}
