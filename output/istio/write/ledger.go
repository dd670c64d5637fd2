package write

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
)

// Written records the writes, for status and metrics, and to distinguish drift from our own
// changes.
type Written struct {
	mu        sync.Mutex
	inOrder   map[object.Ref]object.Fingerprint // the fingerprint of an object when it was last in order
	versions  map[object.Ref]string             // versions of our writes, until they were seen
	pending   map[object.Key]time.Time          // when the first unwritten change was committed
	restored  map[object.Ref][]time.Time        // when objects were restored lately
	notes     map[object.Key]note
	writes    map[plan.Verb]uint64
	failures  uint64
	drift     uint64
	lastWrite time.Time
	underWay  map[object.Ref]underWay // unanswered writes
}

// underWay is an unanswered write of a key.
type underWay struct {
	key   object.Key
	since time.Time
}

// note is the omissions of a key: endpoints that a translation left out, and objects that
// are left unchanged though they should change.
type note struct {
	left    []translate.LeftOut
	invalid string
	held    []Held
}

// hold records an object that is left unchanged. WorkloadEntries of a service that are left
// for the same reason count as one, because there may be thousands.
func (n *note) hold(key object.Key, a plan.Action) {
	h := Held{a.Ref, a.Reason, a.Wait.Endpoints, a.Wait.Since}
	if a.Kind == object.WorkloadEntry && key.Name != "" {
		h.Ref = object.Ref(key)
		same := func(o Held) bool { return o.Ref == h.Ref && o.Reason == h.Reason && o.Since.Equal(h.Since) }
		if at := slices.IndexFunc(n.held, same); at >= 0 {
			n.held[at].Endpoints += h.Endpoints
			return
		}
	}
	n.held = append(n.held, h)
}

func newWritten() *Written {
	return &Written{
		inOrder: map[object.Ref]object.Fingerprint{}, versions: map[object.Ref]string{}, pending: map[object.Key]time.Time{}, underWay: map[object.Ref]underWay{},
		notes: map[object.Key]note{}, writes: map[plan.Verb]uint64{}, restored: map[object.Ref][]time.Time{},
	}
}

// Committed records since when keys wait to be written.
func (l *Written) Committed(keys []object.Key, at time.Time) {
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

// Reached returns how long ago the first unwritten change of a key was committed.
func (l *Written) Reached(key object.Key) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.pending[key]
	delete(l.pending, key)
	return time.Since(at), ok
}

// Planned records the objects of a key that are in order, held or left out.
func (l *Written) Planned(key object.Key, p plan.Plan) {
	n := note{left: p.LeftOut, invalid: p.Invalid}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p.Actions) == 0 && !p.Partly { // neither desired nor existing: another writer may have deleted it
		l.forget(key)
	}
	for _, a := range p.Actions {
		switch {
		case a.Verb != plan.Leave:
		case a.Wait.Reason == "":
			l.inOrder[a.Ref] = a.Want.Fingerprint()
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
func (l *Written) forget(key object.Key) {
	r := firstOf(key)
	delete(l.inOrder, r)
	delete(l.versions, r)
	delete(l.restored, r)
}

// firstOf returns the first object of a key.
func firstOf(key object.Key) object.Ref {
	r := object.Ref(key)
	if r.Kind != object.Sidecar {
		r.Name = compose.NameOf(key.Name)
	}
	return r
}

// drifted reports whether another writer has changed or deleted an object: it was in order,
// and the desired state is the same.
func (l *Written) drifted(a plan.Action) bool {
	if a.Verb != plan.Create && a.Verb != plan.Update {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.inOrder[a.Ref]
	return ok && was == a.Want.Fingerprint()
}

// An object is in conflict after so many restorations within that time.
const (
	ConflictAfter  = 5
	conflictWithin = 30 * time.Second
)

// inConflict reports whether another writer keeps changing an object, and how long to wait
// before it is restored again.
func (l *Written) inConflict(r object.Ref, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lately := slices.DeleteFunc(l.restored[r], func(at time.Time) bool { return now.Sub(at) >= conflictWithin })
	if len(lately) == 0 {
		delete(l.restored, r)
		return 0, false
	}
	l.restored[r] = lately
	return conflictWithin - now.Sub(lately[0]), len(lately) >= ConflictAfter
}

func (l *Written) wrote(a plan.Action, now object.Observed, drifted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[a.Verb]++
	l.lastWrite = time.Now()
	if drifted {
		l.drift++
		l.restored[a.Ref] = append(l.restored[a.Ref], l.lastWrite)
	}
	if a.Verb == plan.Delete {
		delete(l.inOrder, a.Ref)
		delete(l.versions, a.Ref)
		delete(l.restored, a.Ref)
		return
	}
	l.inOrder[a.Ref], l.versions[a.Ref] = a.Want.Fingerprint(), now.Version
}

// sent records an unanswered write; the returned function records the answer.
func (l *Written) sent(a plan.Action, now time.Time) (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay[a.Ref] = underWay{a.Key(), now}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.underWay, a.Ref)
	}
}

// unanswered returns the writes that the API server should have answered by now.
func (l *Written) unanswered(now time.Time) map[object.Ref]underWay {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := map[object.Ref]underWay{}
	for r, write := range l.underWay {
		if now.Sub(write.since) >= unansweredAfter {
			late[r] = write
		}
	}
	return late
}

func (l *Written) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
}

// Echo reports whether an observed version is our own write.
func (l *Written) Echo(o, now *object.Observed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now == nil || l.versions[o.Ref] != now.Version {
		return false
	}
	return true
}

// Begin drops the records that are valid for one term only: another replica has written
// meanwhile.
func (l *Written) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.inOrder)
	clear(l.versions)
	clear(l.notes)
	clear(l.pending)
}

// Counts are the recorded writes and the objects that are left unchanged.
type Counts struct {
	LastWrite time.Time
	Writes    map[plan.Verb]uint64
	Failures  uint64
	Drift     uint64 // objects that were restored after another writer had changed them
	Held      []Held
}

// Held is an object that is left unchanged, though it should change.
type Held struct {
	object.Ref
	Reason string
	// Endpoints counts the endpoints that would be lost, and Since is when that was detected.
	// Both are zero while the source has not been listed.
	Endpoints int
	Since     time.Time
}

// Omission is the part of a service that could not be written.
type Omission struct {
	object.Key
	// Invalid is why nothing of it is written; empty if a part is.
	Invalid string
	LeftOut []translate.LeftOut
}

// Counts returns the writes so far.
func (l *Written) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := Counts{LastWrite: l.lastWrite, Failures: l.failures, Drift: l.drift, Writes: maps.Clone(l.writes)}
	for _, n := range l.notes {
		c.Held = append(c.Held, n.held...)
	}
	slices.SortFunc(c.Held, func(a, b Held) int { return a.Compare(b.Ref) })
	return c
}

// Omissions returns the parts of services that cannot be written, in order.
func (l *Written) Omissions() []Omission {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Omission
	for key, n := range l.notes {
		if len(n.left) == 0 && n.invalid == "" {
			continue
		}
		list = append(list, Omission{key, n.invalid, n.left})
	}
	slices.SortFunc(list, func(a, b Omission) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// unansweredAfter is the time of a write in the API server after which it counts as a
// failure, though it may still succeed.
const unansweredAfter = 5 * time.Second

// WithUnanswered adds hanging writes to the failures of keys.
func (l *Written) WithUnanswered(failing []controller.Failure[object.Key], now time.Time) []controller.Failure[object.Key] {
	for r, write := range l.unanswered(now) {
		err := fmt.Errorf("%s: no response of the API server to this write for %s; the write is cancelled after %s, and retried",
			r, now.Sub(write.since).Round(time.Second), longest)
		if at := slices.IndexFunc(failing, func(f controller.Failure[object.Key]) bool { return f.Key == write.key }); at >= 0 {
			failing[at].Err = err
			continue
		}
		failing = append(failing, controller.Failure[object.Key]{Key: write.key, Err: err, Tries: 1, Since: write.since})
	}
	slices.SortFunc(failing, func(a, b controller.Failure[object.Key]) int { return a.Since.Compare(b.Since) })
	return failing
}

// Size returns the number of records of objects, and of keys that wait to be written.
func (l *Written) Size() (objects, pending int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.inOrder) + len(l.versions) + len(l.restored), len(l.pending)
}
