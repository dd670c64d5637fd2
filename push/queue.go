package push

import "sync"

// queue holds the subscribers that need a turn, each at most once. It can never grow beyond
// their number. Subscribers with urgent changes go before the others, but do not starve
// them: of overtakes+1 turns at least one goes to the ordinary subscriber that waited
// longest.
type queue struct {
	mu               sync.Mutex
	ready            sync.Cond
	urgent, ordinary line
	overtaken        int // urgent turns in a row while an ordinary subscriber waits
	closed           bool
}

// overtakes is the number of urgent turns that may go before each ordinary one.
const overtakes = 4

// phase is a subscriber's state in the queue.
type phase int

const (
	idle    phase = iota
	waiting       // in the queue
	working       // taken by a worker
	again         // taken by a worker, and another turn was requested since
)

// place is a subscriber's place in the queue. It is guarded by the queue's lock.
type place struct {
	phase      phase
	urgent     bool // the requested turn is urgent
	next, prev *Subscriber
}

func newQueue() *queue {
	q := &queue{}
	q.ready.L = &q.mu
	return q
}

// add requests a turn. Only one worker may have a subscriber at a time: a subscriber in its
// turn gets the next when that is done.
func (q *queue) add(s *Subscriber, urgent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &s.place
	hurry := urgent && !p.urgent
	p.urgent = p.urgent || urgent
	switch p.phase {
	case idle:
		q.enqueue(s)
	case waiting:
		if hurry {
			q.ordinary.remove(s)
			q.urgent.append(s)
		}
	case working:
		p.phase = again
	case again:
	}
}

func (q *queue) enqueue(s *Subscriber) {
	s.place.phase = waiting
	if s.place.urgent {
		q.urgent.append(s)
	} else {
		q.ordinary.append(s)
	}
	q.ready.Signal()
}

// take waits for a subscriber and returns it; ok is false once the queue is closed. The
// caller calls done when the turn is over.
func (q *queue) take() (s *Subscriber, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.urgent.first == nil && q.ordinary.first == nil && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return nil, false
	}
	l := q.nextLine()
	s = l.first
	l.remove(s)
	s.place.phase, s.place.urgent = working, false
	return s, true
}

// rests reports whether no subscriber waits.
func (q *queue) rests() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.urgent.first == nil && q.ordinary.first == nil
}

// nextLine returns the line that the next subscriber is taken from.
func (q *queue) nextLine() *line {
	switch {
	case q.ordinary.first == nil:
		q.overtaken = 0
		return &q.urgent
	case q.urgent.first == nil || q.overtaken == overtakes:
		q.overtaken = 0
		return &q.ordinary
	default:
		q.overtaken++
		return &q.urgent
	}
}

func (q *queue) done(s *Subscriber) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.place.phase == again {
		q.enqueue(s)
		return
	}
	s.place.phase = idle
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}

// line is some subscribers in order. Any of them may leave it at any time, and none costs
// an allocation.
type line struct{ first, last *Subscriber }

func (l *line) append(s *Subscriber) {
	s.place.prev, s.place.next = l.last, nil
	if l.last == nil {
		l.first = s
	} else {
		l.last.place.next = s
	}
	l.last = s
}

func (l *line) remove(s *Subscriber) {
	before, after := s.place.prev, s.place.next
	if before == nil {
		l.first = after
	} else {
		before.place.next = after
	}
	if after == nil {
		l.last = before
	} else {
		after.place.prev = before
	}
	s.place.prev, s.place.next = nil, nil
}
