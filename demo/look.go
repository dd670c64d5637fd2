package demo

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
)

// remembered is how long a backend that has left is still shown.
const remembered = time.Minute

// view is the visible state at one moment.
type view struct {
	services          []serviceView // by name
	answers, failures int
	failure           string   // the last one
	changes           []change // since the last look, oldest first
	sources           []admin.Source
	trouble           error // instead of the sources
}

type serviceView struct {
	name     string
	backends []backendView // by name
	change   change
}

type backendView struct {
	name    string
	answers int
	share   float64 // of the answers in the last second
	state   string  // in words, if it did not answer in the last second
}

// sight is the tour's view of one backend.
type sight struct {
	answers       int
	first, active time.Time
}

func (l *ledger) sight(service, backend string) sight {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.account(service).sighting(backend)
	return sight{s.answers, s.first, s.active()}
}

// answers and failures count since the beginning.
func (l *ledger) answers(service string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.account(service).answers
}

func (l *ledger) failures() (count int, last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		count += a.failures
		last = cmp.Or(a.failure, last)
	}
	return count, last
}

// look returns the current view, with the changes since the last call.
func (l *ledger) look(now time.Time) view {
	l.sweep(now)
	v := view{}
	v.failures, v.failure = l.failures()
	l.mu.Lock()
	defer l.mu.Unlock()
	v.changes, l.changes = l.changes, nil
	slices.SortStableFunc(v.changes, func(a, b change) int { return a.at.Compare(b.at) })
	for _, name := range slices.Sorted(maps.Keys(l.accounts)) {
		a := l.accounts[name]
		v.answers += a.answers
		v.services = append(v.services, serviceView{name, a.look(now), a.change})
	}
	return v
}

func (a *account) look(now time.Time) []backendView {
	total := 0
	for _, s := range a.backends {
		s.forget(now)
		total += len(s.recent)
	}
	var list []backendView
	for _, name := range slices.Sorted(maps.Keys(a.backends)) {
		s := a.backends[name]
		if now.Sub(s.active()) > remembered || s.active().IsZero() {
			continue
		}
		v := backendView{name: name, answers: s.answers}
		if len(s.recent) > 0 {
			v.share = float64(len(s.recent)) / float64(total)
		} else {
			v.state = s.state()
		}
		list = append(list, v)
	}
	return list
}

// state returns the state of a backend that does not answer.
func (s *sighting) state() string {
	switch {
	case s.left:
		return "left"
	case s.answers > 0:
		return "lost, retrying"
	default:
		return "trying"
	}
}
