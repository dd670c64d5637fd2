package istio

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// Form is how the endpoints of a service are written.
type Form string

// The forms. In that of WorkloadEntry objects, a change of one endpoint writes one
// small object; inline, whatever concerns the whole service costs less.
const (
	Inline          Form = "inline"
	WorkloadEntries Form = "workloadEntries"
	Auto            Form = "auto" // by the size of the service
)

// A service has the second form under [Auto] from more than autoAbove endpoints on, and
// until there are fewer than half of it. They are registered ones, healthy or not.
// What is between them keeps a service from moving to and fro, for a move writes
// each endpoint once. A large service is one of which single endpoints change often,
// and that seldom changes as a whole.
const autoAbove = 1000

// isWorkloads reports whether a service is to be written with WorkloadEntries. now says
// whether it is.
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
	case !f.mayBeWorkloads() || !convert.TakesWorkloads(s):
		return false
	case f == WorkloadEntries:
		return true
	case now:
		return registered(s) >= above/2
	default:
		return registered(s) > above
	}
}

// registered is how many endpoints a port of a service has at most.
func registered(s *catalog.Service) (most int) {
	for _, port := range s.Ports {
		if e := s.Endpoints(port.Number); e != nil {
			most = max(most, e.Total)
		}
	}
	return most
}

// stage is a step of the way from one form to the other. Each is safe whatever is
// written next, or is not: the ServiceEntry changes from endpoints to a selector, or
// back, by one write, and what it has afterwards was there before.
type stage int

const (
	allInline   stage = iota // endpoints in ServiceEntries
	bothInline               // and WorkloadEntries that nothing selects
	bothSelects              // WorkloadEntries that the first ServiceEntry selects, and the other ServiceEntries as they are inline
	allSelects               // WorkloadEntries alone
)

// present is what there is of a service, as far as it concerns the form.
type present struct {
	first     bool // the first ServiceEntry
	selects   bool // and it selects our WorkloadEntries
	workloads int  // of any
	lacks     int  // WorkloadEntries that there should be
	others    bool // the other ServiceEntries of the inline form are as they should be
	held      bool // a WorkloadEntry that should go may not yet
}

// next returns the stage that a service comes to next on its way to a form, and
// whether that is only to be left when it has lasted for a while: an istiod follows
// ServiceEntries and WorkloadEntries by two watches, of which one may be behind.
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

// over is the stage after one that has lasted.
func over(toWorkloads bool) stage {
	if toWorkloads {
		return bothSelects
	}
	return allInline
}

// settleFor is how long a stage lasts that is to last: far longer than an istiod that
// keeps up is behind, and of no account beside the writes of a move.
const settleFor = 5 * time.Second

// settling tells since when the services that move are in a stage that lasts.
type settling struct {
	mu  sync.Mutex
	all map[Key]lasting
}

type lasting struct {
	toWorkloads bool
	since       time.Time
}

// remains is how long a stage has to last still.
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
