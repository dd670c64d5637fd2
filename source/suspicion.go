package source

import "github.com/isthmus-mesh/isthmus/model"

// A drop is judged by numbers of endpoints. The mark of a service is the highest
// number that its registry listed within Hold.For; its loss is the mark less the
// number that a listing leaves. So a service that has as many endpoints as before has
// lost none, whichever they are. An endpoint that one service gains makes up for none
// that another loses.

// fall is the loss of a source by a listing that lacks records.
type fall struct {
	services map[model.Ref]number // the services that may have lost endpoints
	total    int                  // the sum of the marks of all services
	// suspected counts endpoints that other systems hold: they are lost, too.
	suspected int
	// nothing says that the source is left without any former record. The same holds
	// if it had endpoints and has none, or had only services and has none.
	nothing bool
	// replaced counts the former endpoints if the listing has none of them, and
	// people do not edit the registry.
	replaced int
}

// number is a service's number of endpoints: its mark, and the number after a listing.
type number struct {
	mark, now int
	lacks     bool // the listing lacks the service, or endpoints that it had until now
}

func (n number) loss() int { return max(0, n.mark-n.now) }

// loss returns how many endpoints the services of the source have lost.
func (f fall) loss() int {
	lost := f.suspected
	for _, n := range f.services {
		lost += n.loss()
	}
	return lost
}

// suspicion is the suspicious part of a fall.
type suspicion struct {
	whole    bool // of the source: every missing record is held
	services map[model.Ref]number
	lost     int // endpoints of the source
}

// suspects judges a fall. A service without a name, of workloads that no service
// selects, is no cause of its own.
func (h Hold) suspects(f fall) suspicion {
	s := suspicion{services: map[model.Ref]number{}, lost: max(f.loss(), f.replaced)}
	s.whole = h.Suspicious(f.loss(), f.total+f.suspected) || h.judgesAll() && (f.nothing || f.replaced > h.Min)
	for service, n := range f.services {
		if service.Kind == model.KindService && n.lacks && n.now == 0 && h.SuspiciousAlone(n.mark) {
			s.services[service] = n
		}
	}
	return s
}

// is reports whether any record is to be held.
func (s suspicion) is() bool { return s.whole || len(s.services) > 0 }

// cause returns the cause for which a missing record is held, given the services it
// counts for: the source as a whole, which is the zero reference, or a service.
func (s suspicion) cause(rec model.Record, services []model.Ref) (_ model.Ref, held bool) {
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

// isEndpoint reports whether records of that kind are endpoints.
func isEndpoint(kind model.Kind) bool {
	return kind == model.KindEndpoint || kind == model.KindWorkload
}

// endpointsIn returns how many endpoints a record of that kind counts for.
func endpointsIn(kind model.Kind) int {
	if isEndpoint(kind) {
		return 1
	}
	return 0
}

// stock counts the records of a source.
type stock struct {
	stored    int // of all kinds
	endpoints int
	services  int
}

func (s *stock) add(ref model.Ref, by int) {
	s.stored += by
	s.endpoints += by * endpointsIn(ref.Kind)
	if ref.Kind == model.KindService {
		s.services += by
	}
}
