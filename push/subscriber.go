package push

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Mode is how a subscriber takes resources.
type Mode int

// The modes.
const (
	// WholeState subscribers name all they want in each request, and are sent
	// the full set of a [TypeSpec].Whole type each time (xDS: state of the world).
	WholeState Mode = iota
	// Delta subscribers add and drop names, and are sent what changed.
	Delta
)

// Info says who a subscriber is, for people. It decides nothing.
type Info struct {
	ID       string
	Protocol string // "xds-sotw", "xds-delta"
	Identity string // proven by certificate, or claimed
	Proven   bool
	Since    time.Time
}

// Subscriber is one stream of one client. Its methods may be called from any
// goroutine.
type Subscriber struct {
	Info Info

	engine *Engine
	client Client
	mode   Mode
	out    chan Response
	place  place // guarded by the queue

	mu     sync.Mutex
	view   View // of the client, in the world it was last reviewed in
	types  []state
	serial uint64
	closed bool
	failed atomic.Bool // by a panic

	marks marks
}

// Response is what a subscriber is to be sent.
type Response struct {
	Type Type
	// Serial is unique within the subscriber; an answer names it.
	Serial uint64
	// Version is a hash of everything of the type that the subscriber holds
	// once it accepts.
	Version   Version
	Resources []*Resource
	Removed   []string // for Delta subscribers

	since time.Time // commit of its oldest change; zero if unknown
}

// Connect enters a subscriber. It returns nil once the engine has stopped.
func (e *Engine) Connect(info Info, client Client, mode Mode) *Subscriber {
	s := &Subscriber{
		Info: info, engine: e, client: client, mode: mode,
		// A type has at most one response that was not yet handed to the
		// transport, so that putting one in never blocks a worker.
		out:   make(chan Response, len(e.config.Types)),
		types: make([]state, len(e.config.Types)),
	}
	s.marks.types = make([]marked, len(e.config.Types))
	for t := range s.types {
		s.types[t] = newState(e.config.Types[t].Whole && mode == WholeState)
	}
	// Its first turn finds out what it sees. From when it is entered here, a
	// world in which it sees something else asks for that again.
	s.marks.review.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	e.subscribers[s] = struct{}{}
	return s
}

// Out delivers the responses to send, in order. It is closed by [Subscriber.Close].
// After handing one to the transport the reader calls [Subscriber.Sent].
func (s *Subscriber) Out() <-chan Response { return s.out }

// Close ends the subscriber and forgets all about it.
func (s *Subscriber) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.out)
	for t := range s.types {
		st := &s.types[t]
		s.engine.index.remove(s, Type(t), maps.Keys(st.names))
		s.engine.index.setWildcard(s, Type(t), false)
		st.newest().stop()
	}
	s.engine.mu.Lock()
	delete(s.engine.subscribers, s)
	s.engine.mu.Unlock()
}

// Sent says that the transport has taken a response: from now on its answer is
// awaited.
func (s *Subscriber) Sent(r Response) {
	if sent := s.engine.config.Sent; sent != nil && !r.since.IsZero() {
		sent(r.Type, time.Since(r.since))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.types[r.Type].newest()
	if s.closed || f == nil || f.serial != r.Serial {
		return
	}
	f.sentAt = time.Now()
	f.timer = time.AfterFunc(s.engine.config.Patience, func() { s.overdue(r.Type, r.Serial) })
}

// overdue gives up waiting for an answer: the newest may be sent.
func (s *Subscriber) overdue(t Type, serial uint64) {
	turn, urgent := false, false
	s.mu.Lock()
	if f := s.types[t].newest(); f != nil && f.serial == serial {
		f.overdue = true
		turn, urgent = s.unblocked(t)
	}
	s.mu.Unlock()
	if turn {
		s.engine.queue.add(s, urgent)
	}
}

// unblocked tells what there is to do once a type need not wait any longer.
func (s *Subscriber) unblocked(t Type) (turn, urgent bool) {
	turn, urgent = s.needs()
	marked, hurry := s.unblock(t)
	return turn || marked, urgent || hurry
}

// needs tells whether any type has anything to send or to look at. Names that
// were marked meanwhile do not count: who marks them asks for a turn, too.
func (s *Subscriber) needs() (turn, urgent bool) {
	for t := range s.types {
		st := &s.types[t]
		turn = turn || !st.rests()
		urgent = urgent || st.urgent && len(st.pending) > 0
	}
	return turn, urgent
}
