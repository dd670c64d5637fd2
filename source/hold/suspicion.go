package hold

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Fall is the loss of a source by a listing that lacks records.
type Fall struct {
	Services map[model.Ref]Number // the services that may have lost endpoints
	Total    int                  // the sum of the marks of all services
	// Suspected counts endpoints that other systems hold: they are lost, too.
	Suspected int
	// Nothing says that the source is left without any former record. The same holds
	// if it had endpoints and has none, or had only services and has none.
	Nothing bool
	// Replaced counts the former endpoints if the listing has none of them, and
	// people do not edit the registry.
	Replaced int
}

// Number is a service's number of endpoints: its mark, and the number after a listing.
type Number struct {
	Mark, Now int
	Lacks     bool // the listing lacks the service, or endpoints that it had until now
}

func (n Number) loss() int { return max(0, n.Mark-n.Now) }

// loss returns how many endpoints the services of the source have lost.
func (f Fall) loss() int {
	lost := f.Suspected
	for _, n := range f.Services {
		lost += n.loss()
	}
	return lost
}

// Suspicion is the suspicious part of a fall.
type Suspicion struct {
	whole    bool // of the source: every missing record is held
	services map[model.Ref]Number
	lost     int // endpoints of the source
	had      int // endpoints of the source, until now
}

// Suspects judges a fall. A service without a name, of workloads that no service
// selects, is no cause of its own.
func (c Config) Suspects(f Fall) Suspicion {
	s := Suspicion{services: map[model.Ref]Number{}, lost: max(f.loss(), f.Replaced), had: f.Total + f.Suspected}
	s.whole = c.Suspicious(f.loss(), f.Total+f.Suspected) || c.judgesAll() && (f.Nothing || f.Replaced > c.Min)
	for service, n := range f.Services {
		if service.Kind == model.KindService && n.Lacks && n.Now == 0 && c.SuspiciousAlone(n.Mark) {
			s.services[service] = n
		}
	}
	return s
}

// Is reports whether any record is to be held.
func (s Suspicion) Is() bool { return s.whole || len(s.services) > 0 }

// Cause returns the cause for which a missing record is held, given the services it
// counts for: the source as a whole, which is the zero reference, or a service.
func (s Suspicion) Cause(rec model.Record, services []model.Ref) (_ model.Ref, held bool) {
	if s.whole {
		return model.Ref{}, true
	}
	if _, is := s.services[rec.Ref]; is {
		return rec.Ref, true
	}
	for _, service := range services {
		if _, is := s.services[service]; is {
			return service, true
		}
	}
	return model.Ref{}, false
}

// terms returns for each cause of a suspicion why records are held.
func (s Suspicion) terms(cfg Config) map[model.Ref]Terms {
	all := map[model.Ref]Terms{}
	for service, n := range s.services {
		all[service] = Terms{fmt.Sprintf("not listed any more, together with all %d endpoints of %s within %s", n.Mark, reading.Describe(service), cfg.For), n.Mark}
	}
	if s.whole && s.lost == 0 {
		all[model.Ref{}] = Terms{"not listed any more, together with everything else of its source at once", 0}
	} else if s.whole {
		all[model.Ref{}] = Terms{fmt.Sprintf("not listed any more, together with %d endpoints of its source within %s", s.lost, cfg.For), s.had}
	}
	return all
}
