package push

import "github.com/isthmus-mesh/isthmus/push/session"

// Panics returns the panics that the engine survived, by place. It includes places without
// a panic.
func (e *Engine) Panics() []Panic { return e.reader.List() }

// serve runs a subscriber's turn with a worker.
func (e *Engine) serve(s *Subscriber, l *session.Look) {
	defer e.queue.done(s)
	if s.Failed() || !e.reader.Attempt(PanicStream, "client "+s.Info.ID, func() { s.advance(l) }) {
		s.failed.Store(true)
		s.Close()
	}
}

// take makes a step. If the step panics, the subscribers that it did not reach are unknown,
// so all of them are ended.
func (e *Engine) take(step func()) {
	if e.reader.Attempt(PanicStep, "a step", step) {
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
