package istio

import (
	"sync"
	"time"
)

// ledger keeps account of what was written, for status, metrics and to tell
// drift from changes of our own.
type ledger struct {
	mu        sync.Mutex
	inOrder   map[Ref]fingerprint // what an object said when it last was as it should be
	versions  map[Ref]string      // that our writes led to, until they were seen
	pending   map[Key]time.Time   // when the first change was committed that is not written
	notes     map[Key]note
	waiting   map[Ref]string // objects that are left as they are, and why
	writes    map[Verb]uint64
	failures  uint64
	drift     uint64
	lastWrite time.Time
}

// note is what a translation left out.
type note struct {
	left    []LeftOut
	refused string
}

func (l *ledger) init() {
	l.inOrder, l.versions, l.pending = map[Ref]fingerprint{}, map[Ref]string{}, map[Key]time.Time{}
	l.notes, l.waiting, l.writes = map[Key]note{}, map[Ref]string{}, map[Verb]uint64{}
}

// committed notes since when keys wait to be written.
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

func (l *ledger) translated(key Key, t Translation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(t.LeftOut) == 0 && t.Refused == "" {
		delete(l.notes, key)
		return
	}
	l.notes[key] = note{t.LeftOut, t.Refused}
}

// drifted reports whether an object was in order, and is not although nothing
// else is wanted of it: somebody has changed or deleted it.
func (l *ledger) drifted(a Action) bool {
	if a.Verb != Create && a.Verb != Update {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.inOrder[a.Ref]
	return ok && was == a.want.fingerprint()
}

// left notes an object that needs nothing, or may not be changed yet.
func (l *ledger) left(a Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.want.Name != "" && a.want.differs(a.have) == "" {
		l.inOrder[a.Ref] = a.want.fingerprint()
		delete(l.waiting, a.Ref)
		return
	}
	l.waiting[a.Ref] = a.Reason
}

func (l *ledger) wrote(a Action, now Observed, drifted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[a.Verb]++
	l.lastWrite = time.Now()
	if drifted {
		l.drift++
	}
	delete(l.waiting, a.Ref)
	if a.Verb == Delete {
		delete(l.inOrder, a.Ref)
		delete(l.versions, a.Ref)
		return
	}
	l.inOrder[a.Ref], l.versions[a.Ref] = a.want.fingerprint(), now.Version
}

func (l *ledger) failed(Action, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
}

// echo reports whether what was seen of an object is what we ourselves wrote.
func (l *ledger) echo(o, now *Observed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now == nil || l.versions[o.Ref] != now.Version {
		return false
	}
	return true
}

// begin forgets what is only known of the objects during one term: another
// replica has written meanwhile.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.inOrder)
	clear(l.versions)
	clear(l.waiting)
	clear(l.notes)
	clear(l.pending)
}
