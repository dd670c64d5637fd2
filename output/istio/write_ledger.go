package istio

import (
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// ledger records the writes, for status and metrics, and to distinguish drift from our own
// changes.
type ledger struct {
	mu        sync.Mutex
	inOrder   map[Ref]fingerprint // the fingerprint of an object when it was last in order
	versions  map[Ref]string      // versions of our writes, until they were seen
	pending   map[Key]time.Time   // when the first unwritten change was committed
	restored  map[Ref][]time.Time // when objects were restored lately
	notes     map[Key]note
	writes    map[Verb]uint64
	failures  uint64
	drift     uint64
	lastWrite time.Time
	underWay  map[Ref]underWay // unanswered writes
}

// underWay is an unanswered write of a key.
type underWay struct {
	key   Key
	since time.Time
}

// note is the omissions of a key: endpoints that a translation left out, and objects that
// are left unchanged though they should change.
type note struct {
	left    []LeftOut
	invalid string
	held    []Held
}

// hold records an object that is left unchanged. WorkloadEntries of a service that are left
// for the same reason count as one, because there may be thousands.
func (n *note) hold(key Key, a Action) {
	h := Held{a.Ref, a.Reason, a.wait.endpoints, a.wait.since}
	if a.Kind == WorkloadEntry && key.Name != "" {
		h.Ref = Ref(key)
		same := func(o Held) bool { return o.Ref == h.Ref && o.Reason == h.Reason && o.Since.Equal(h.Since) }
		if at := slices.IndexFunc(n.held, same); at >= 0 {
			n.held[at].Endpoints += h.Endpoints
			return
		}
	}
	n.held = append(n.held, h)
}

func (l *ledger) init() {
	l.inOrder, l.versions, l.pending = map[Ref]fingerprint{}, map[Ref]string{}, map[Key]time.Time{}
	l.underWay = map[Ref]underWay{}
	l.notes, l.writes, l.restored = map[Key]note{}, map[Verb]uint64{}, map[Ref][]time.Time{}
}

// committed records since when keys wait to be written.
func (l *ledger) committed(keys []Key, at time.Time) {
	if at.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if _, ok := l.pending[key]; !ok {
			l.pending[key] = at
		}
	}
}

func (l *ledger) reached(key Key) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.pending[key]
	delete(l.pending, key)
	return time.Since(at), ok
}

// planned records the objects of a key that are in order, held or left out.
func (l *ledger) planned(key Key, t Translation, actions []Action) {
	n := note{left: t.LeftOut, invalid: t.Invalid}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(actions) == 0 && !t.partly { // neither desired nor existing: another writer may have deleted it
		l.forget(key)
	}
	for _, a := range actions {
		switch {
		case a.Verb != Leave:
		case a.wait.reason == "":
			l.inOrder[a.Ref] = a.want.fingerprint()
		default:
			n.hold(key, a)
		}
	}
	if len(n.left) == 0 && n.invalid == "" && len(n.held) == 0 {
		delete(l.notes, key)
		return
	}
	l.notes[key] = n
}

// forget drops the records of the first object of a key. Others are dropped with the next
// term.
func (l *ledger) forget(key Key) {
	r := Ref(key)
	if r.Kind == ServiceEntry {
		r.Name = compose.NameOf(key.Name)
	}
	delete(l.inOrder, r)
	delete(l.versions, r)
	delete(l.restored, r)
}

// drifted reports whether another writer has changed or deleted an object: it was in order,
// and the desired state is the same.
func (l *ledger) drifted(a Action) bool {
	if a.Verb != Create && a.Verb != Update {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.inOrder[a.Ref]
	return ok && was == a.want.fingerprint()
}

// An object is contested after so many restorations within that time.
const (
	contestedAfter  = 5
	contestedWithin = 30 * time.Second
)

// contested reports whether another writer keeps changing an object, and how long to wait
// before it is restored again.
func (l *ledger) contested(r Ref, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lately := slices.DeleteFunc(l.restored[r], func(at time.Time) bool { return now.Sub(at) >= contestedWithin })
	if len(lately) == 0 {
		delete(l.restored, r)
		return 0, false
	}
	l.restored[r] = lately
	return contestedWithin - now.Sub(lately[0]), len(lately) >= contestedAfter
}

func (l *ledger) wrote(a Action, now Observed, drifted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[a.Verb]++
	l.lastWrite = time.Now()
	if drifted {
		l.drift++
		l.restored[a.Ref] = append(l.restored[a.Ref], l.lastWrite)
	}
	if a.Verb == Delete {
		delete(l.inOrder, a.Ref)
		delete(l.versions, a.Ref)
		delete(l.restored, a.Ref)
		return
	}
	l.inOrder[a.Ref], l.versions[a.Ref] = a.want.fingerprint(), now.Version
}

// sent records an unanswered write; the returned function records the answer.
func (l *ledger) sent(a Action, now time.Time) (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay[a.Ref] = underWay{a.key(), now}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.underWay, a.Ref)
	}
}

// unanswered returns the writes that the API server should have answered by now.
func (l *ledger) unanswered(now time.Time) map[Ref]underWay {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := map[Ref]underWay{}
	for r, write := range l.underWay {
		if now.Sub(write.since) >= unansweredAfter {
			late[r] = write
		}
	}
	return late
}

func (l *ledger) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
}

// echo reports whether an observed version is our own write.
func (l *ledger) echo(o, now *Observed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now == nil || l.versions[o.Ref] != now.Version {
		return false
	}
	return true
}

// begin drops the records that are valid for one term only: another replica has written
// meanwhile.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.inOrder)
	clear(l.versions)
	clear(l.notes)
	clear(l.pending)
}
