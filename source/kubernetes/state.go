package kubernetes

import (
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// part is a unit of listing: a kind, or its objects in one namespace.
type part struct{ resource, namespace string }

// parts are the parts that have not been listed.
type parts map[part]bool

func partsOf(kinds []kind) parts {
	all := make(parts, len(kinds))
	for _, k := range kinds {
		all[k.part()] = true
	}
	return all
}

// of returns the parts of a kind.
func (p parts) of(resource string) parts {
	some := parts{}
	for one := range p {
		if one.resource == resource {
			some[one] = true
		}
	}
	return some
}

// has reports whether an object of a namespace is in one of them.
func (p parts) has(resource, namespace string) bool {
	return p[part{resource, ""}] || p[part{resource, namespace}]
}

// state is the state of the cluster. Feeds enter objects in the order of arrival, and
// the run takes the steps to pass on. Its methods may be called from anywhere.
type state struct {
	mu       sync.Mutex
	objects  *objects
	unlisted parts // parts that a listing lacks yet
	primed   bool
	pending  []step
	since    time.Time // arrival of the first pending change
}

// step is one listing or change to pass on, in order.
type step struct {
	change  model.Change
	listing *model.Listing // instead of the change
	lacks   parts          // parts that were not listed yet when the listing was made
}

func newState(o *objects, kinds []kind) *state {
	return &state{objects: o, unlisted: partsOf(kinds)}
}

// change enters one object.
func (s *state) change(resource string, o object, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began(at)
	s.objects.enter(resource, o, s.awaitsFrom(at))
}

// replace enters all objects of a part. A missing object is not passed on as deleted: a
// listing lacks it.
func (s *state) replace(p part, all []object, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began(at)
	s.flush()
	s.objects.replace(p, all, s.awaitsFrom(at))
	first := s.unlisted[p]
	delete(s.unlisted, p)
	switch place := placeOf(p.resource); {
	case !s.primed:
	case place != "":
		s.append(place)
	case first: // no record has this place, but the status reports it as lacking
		s.append(p.resource)
	}
}

// awaitsFrom returns when to begin to await new pods; zero if none is awaited. Endpoints
// of a first listing are passed on at once: they may be older than the run.
func (s *state) awaitsFrom(at time.Time) time.Time {
	if !s.primed {
		return time.Time{}
	}
	return at
}

// isEmpty reports whether a part has no objects, as far as it is read.
func (s *state) isEmpty(p part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.objects.names(p.resource) {
		if p.namespace == "" || name.Namespace == p.namespace {
			return false
		}
	}
	return true
}

// isListed reports whether a part has been listed.
func (s *state) isListed(p part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unlisted[p]
}

func (s *state) began(at time.Time) {
	if s.since.IsZero() {
		s.since = at
	}
}

// lapse stops awaiting pods that did not come, and returns the time until the next deadline.
func (s *state) lapse(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, some := s.objects.places.lapse(now)
	if some {
		s.began(now)
	}
	return next
}

// take returns the pending steps in order, and clears them.
func (s *state) take() []step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken()
}

func (s *state) taken() []step {
	if !s.primed {
		return nil
	}
	s.flush()
	steps := s.pending
	s.pending, s.since = nil, time.Time{}
	return steps
}

// first returns everything, and changes are kept from then on. Data of unread nodes
// and pods is taken from the stored endpoints.
func (s *state) first(stored func() iter.Seq[model.Record]) []step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.recall(stored, s.unlisted)
	s.primed = true
	s.pending = nil
	return []step{s.everything()}
}

// all returns everything once more, after the pending steps.
func (s *state) all() []step {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := s.taken() // in one step with the rest, so that no older listing follows
	return append(steps, s.everything())
}

// list appends a listing of a place to the pending steps.
func (s *state) list(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.append(place)
}

// append adds a listing of a place to the pending steps. Pending changes there are part
// of it. The unlisted parts are noted with it: they may be listed by the time the listing
// is passed on.
func (s *state) append(place string) {
	listing := &model.Listing{Places: []string{place}, Observed: s.since, Ignored: s.objects.ignored()}
	s.objects.add(listing, place)
	s.pending = append(s.pending, step{listing: listing, lacks: s.unlisted.of(place)})
}

func (s *state) everything() step {
	whole := &model.Listing{Observed: s.since, Ignored: s.objects.ignored()}
	if whole.Observed.IsZero() {
		whole.Observed = time.Now()
	}
	s.since = time.Time{}
	for _, place := range s.objects.recordPlaces() {
		s.objects.add(whole, place)
	}
	return step{listing: whole, lacks: maps.Clone(s.unlisted)}
}

// flush appends the changes of single objects to the pending steps.
func (s *state) flush() {
	if !s.primed {
		return
	}
	change := s.objects.change()
	if change.Observed = s.since; !mirror.IsEmpty(change) {
		s.pending = append(s.pending, step{change: change})
	}
	if s.objects.leftOutChanged { // a change cannot carry the count, and this place has no records, so a listing costs little
		s.append(endpointSlices)
	}
}
