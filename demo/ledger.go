package demo

import (
	"sync"
	"time"
)

// recently is how far back the view looks. A backend that neither answered nor
// was tried for so long has left.
const recently = time.Second

// maxChanges bounds the changes that are kept for a slow reader.
const maxChanges = 100

// ledger is the client's observations. Its methods may be called from any goroutine.
type ledger struct {
	changed func(before time.Time) time.Time // when the registry last changed

	mu       sync.Mutex
	accounts map[string]*account // by service
	owners   map[string]owner    // of addresses
	changes  []change            // since the last look
}

type owner struct{ service, backend string }

// account is the observations of a service.
type account struct {
	backends map[string]*sighting
	answers  int
	failures int
	failure  string // the last one
	change   change // the last one
}

// sighting is the observations of a backend.
type sighting struct {
	answers int
	first   time.Time // answer since it joined
	last    time.Time // answer
	tried   time.Time // when the client last connected to it, or failed to
	left    bool
	recent  []time.Time // answers
}

// active is when the client last had to do with the backend.
func (s *sighting) active() time.Time {
	if s.tried.After(s.last) {
		return s.tried
	}
	return s.last
}

// forget drops answers that are not recent any more.
func (s *sighting) forget(now time.Time) {
	for len(s.recent) > 0 && now.Sub(s.recent[0]) > recently {
		s.recent = s.recent[1:]
	}
}

// change is a backend that joined or left the answering backends of a service.
type change struct {
	service, backend string
	joined           bool
	at               time.Time     // of the first answer, or the last attempt to reach it
	after            time.Duration // since the registry changed
}

func newLedger(changed func(time.Time) time.Time) *ledger {
	return &ledger{changed: changed, accounts: map[string]*account{}, owners: map[string]owner{}}
}

// introduce sets the owner of an address.
func (l *ledger) introduce(address, service, backend string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[address] = owner{service, backend}
}

// account and sighting return entries that they make if need be; the lock is held.
func (l *ledger) account(service string) *account {
	a := l.accounts[service]
	if a == nil {
		a = &account{backends: map[string]*sighting{}}
		l.accounts[service] = a
	}
	return a
}

func (a *account) sighting(backend string) *sighting {
	s := a.backends[backend]
	if s == nil {
		s = &sighting{}
		a.backends[backend] = s
	}
	return s
}

func (l *ledger) answered(service, backend string, at time.Time) {
	if l.count(service, backend, at) {
		l.report(change{service: service, backend: backend, joined: true, at: at})
	}
}

// count counts an answer, and reports whether the backend has just joined.
func (l *ledger) count(service, backend string, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(service)
	s := a.sighting(backend)
	joined := s.answers == 0 || s.left
	if joined {
		s.first, s.left = at, false
	}
	a.answers++
	s.answers++
	s.last = at
	s.forget(at)
	s.recent = append(s.recent, at)
	return joined
}

func (l *ledger) failed(service string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(service)
	a.failures++
	a.failure = err.Error()
}

// tried notes an attempt to connect.
func (l *ledger) tried(address string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of, known := l.owners[address]; known {
		l.account(of.service).sighting(of.backend).tried = at
	}
}

// report notes a change. Looking at the registry takes long, so the lock is
// not held for that.
func (l *ledger) report(c change) {
	c.after = c.at.Sub(l.changed(c.at))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account(c.service).change = c
	l.changes = append(l.changes, c)
	l.changes = l.changes[max(0, len(l.changes)-maxChanges):]
}

// sweep finds the backends that have left.
func (l *ledger) sweep(now time.Time) {
	for _, c := range l.leavers(now) {
		l.report(c)
	}
}

func (l *ledger) leavers(now time.Time) []change {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []change
	for service, a := range l.accounts {
		for backend, s := range a.backends {
			if s.answers > 0 && !s.left && now.Sub(s.active()) > recently {
				s.left = true
				list = append(list, change{service: service, backend: backend, at: s.active()})
			}
		}
	}
	return list
}
