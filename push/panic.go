package push

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// The place of a panic, which determines its cost.
const (
	// PanicResource is in the world, as it found or encoded one resource. Subscribers that
	// hold a version of the resource keep it. Others are answered as if the resource did not
	// exist, unless its last good version is still known.
	PanicResource = "resource"
	// PanicStream is in the work for one subscriber, which is ended.
	PanicStream = "stream"
	// PanicStep is in a step for all subscribers. They are all ended, so that each reconnects
	// and is compared with the whole of the new world.
	PanicStep = "step"
)

// Panic describes the panics of one place.
type Panic struct {
	Where string
	Count uint64
	Last  time.Time
	Text  string // message of the last panic
}

// panics counts panics, and logs each text once.
type panics struct {
	log *slog.Logger

	mu     sync.Mutex
	places map[string]*Panic
	logged map[string]struct{}
}

// mostLogged bounds the texts that are logged and remembered.
const mostLogged = 100

func newPanics(log *slog.Logger) *panics {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &panics{log: log, places: map[string]*Panic{}, logged: map[string]struct{}{}}
}

// note counts and logs a panic. It is called before the stack unwinds.
func (p *panics) note(where, about string, value any) {
	text := fmt.Sprintf("%s: %v", about, value)
	if p.count(where, text) {
		p.log.Error("a panic was survived; please report it", "where", where, "err", text, "stack", string(debug.Stack()))
	}
}

// count counts a panic and reports whether it is to be logged.
func (p *panics) count(where, text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places[where] == nil {
		p.places[where] = &Panic{Where: where}
	}
	at := p.places[where]
	at.Count, at.Last, at.Text = at.Count+1, time.Now(), text
	if _, known := p.logged[text]; known || len(p.logged) == mostLogged {
		return false
	}
	p.logged[text] = struct{}{}
	return true
}

// Panics returns the panics that the engine survived, by place. It includes places without
// a panic.
func (e *Engine) Panics() []Panic {
	p := e.panics
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Panic
	for _, where := range []string{PanicResource, PanicStream, PanicStep} {
		if at := p.places[where]; at != nil {
			list = append(list, *at)
		} else {
			list = append(list, Panic{Where: where})
		}
	}
	slices.SortFunc(list, func(a, b Panic) int { return cmp.Compare(a.Where, b.Where) })
	return list
}

// attempt runs a part of the work and reports whether it completed.
func (p *panics) attempt(where, about string, part func()) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			p.note(where, about, value)
			ok = false
		}
	}()
	part()
	return true
}

// find asks a world for a name. bad reports that the look-up panicked.
func (e *Engine) find(w World, v View, r Row, name string) (subject Subject, found, bad bool) {
	ok := e.panics.attempt(PanicResource, name, func() { subject, found = w.Find(v, r, name) })
	return subject, found && ok, !ok
}

// encoded returns a subject's encoded form, or the last good one. It returns nil if
// encoding panicked and there is none.
func (e *Engine) encoded(subject Subject, name string) (res *Resource) {
	e.panics.attempt(PanicResource, name, func() { res = e.cache.get(subject, name) })
	return res
}

// resource returns the encoded resource of a name in a view; nil if there is none.
func (e *Engine) resource(w World, v View, r Row, name string) *Resource {
	subject, ok, _ := e.find(w, v, r, name)
	if !ok {
		return nil
	}
	return e.encoded(subject, name)
}

// void returns the empty resource of a name; nil if there is none.
func (e *Engine) void(info *typeInfo, name string) (res *Resource) {
	if info.Void != nil {
		e.panics.attempt(PanicResource, name, func() {
			if void := info.Void(name); void.Body != nil {
				res = e.cache.resource(void)
			}
		})
	}
	return res
}

// refersTo lists the names that a subject refers to; none if that panicked.
func (e *Engine) refersTo(subject Subject, to string) (names []string) {
	if referrer, refers := subject.(Referrer); refers {
		e.panics.attempt(PanicResource, to, func() { names = slices.Collect(referrer.Refers(to)) })
	}
	return names
}

// serve runs a subscriber's turn with a worker.
func (e *Engine) serve(s *Subscriber, t *turn) {
	defer e.queue.done(s)
	if s.Failed() || !e.panics.attempt(PanicStream, "client "+s.Info.ID, func() { s.advance(t) }) {
		s.failed.Store(true)
		s.Close()
	}
}

// take makes a step. If the step panics, the subscribers that it did not reach are unknown,
// so all of them are ended.
func (e *Engine) take(step func()) {
	if e.panics.attempt(PanicStep, "a step", step) {
		return
	}
	e.failAll()
}

// failAll ends every subscriber: each reconnects and is compared with the whole of the new
// world.
func (e *Engine) failAll() {
	for s := range e.all() {
		e.fail(s)
	}
}

// fail ends a subscriber because of an internal fault. A worker ends it, because the
// dispatcher waits for no subscriber's lock.
func (e *Engine) fail(s *Subscriber) {
	s.failed.Store(true)
	e.queue.add(s, true)
}

// Failed reports whether the subscriber was ended by an internal fault, such as a panic.
// Its subscriptions are gone; its client should reconnect.
func (s *Subscriber) Failed() bool { return s.failed.Load() }
