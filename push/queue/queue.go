// Package queue holds the streams that need a turn of a worker, each at most once, and the
// urgent ones first. It knows nothing of them but their places. Any goroutine may use it.
package queue

import "sync"

// Queue holds the owners that need a turn, each at most once. It can never grow beyond
// their number. Owners with an urgent request go before the others, but do not starve
// them: of Overtakes+1 turns at least one goes to the ordinary owner that waited
// longest.
type Queue[T any] struct {
	mu               sync.Mutex
	ready            sync.Cond
	urgent, ordinary line[T]
	overtaken        int // urgent turns in a row while an ordinary owner waits
	closed           bool
}

// Overtakes is the number of urgent turns that may go before each ordinary one.
const Overtakes = 4

// phase is an owner's state in the queue.
type phase int

const (
	idle    phase = iota
	waiting       // in the queue
	working       // taken by a worker
	again         // taken by a worker, and another turn was requested since
)

// Place is an owner's place in a queue. The queue's lock guards it.
type Place[T any] struct {
	Owner      T // set before the first use
	phase      phase
	urgent     bool // the requested turn is urgent
	next, prev *Place[T]
}

// New returns an empty queue.
func New[T any]() *Queue[T] {
	q := &Queue[T]{}
	q.ready.L = &q.mu
	return q
}

// Add requests a turn. Only one worker may have an owner at a time: an owner in its turn
// gets the next when that is done.
func (q *Queue[T]) Add(p *Place[T], urgent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	hurry := urgent && !p.urgent
	p.urgent = p.urgent || urgent
	switch p.phase {
	case idle:
		q.enqueue(p)
	case waiting:
		if hurry {
			q.ordinary.remove(p)
			q.urgent.append(p)
		}
	case working:
		p.phase = again
	case again:
	}
}

func (q *Queue[T]) enqueue(p *Place[T]) {
	p.phase = waiting
	if p.urgent {
		q.urgent.append(p)
	} else {
		q.ordinary.append(p)
	}
	q.ready.Signal()
}

// Take waits for an owner that needs a turn, and returns its place; ok is false once the
// queue is closed. The caller calls Done when the turn is over.
func (q *Queue[T]) Take() (p *Place[T], ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.urgent.first == nil && q.ordinary.first == nil && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return nil, false
	}
	l := q.nextLine()
	p = l.first
	l.remove(p)
	p.phase, p.urgent = working, false
	return p, true
}

// Rests reports whether no owner waits.
func (q *Queue[T]) Rests() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.urgent.first == nil && q.ordinary.first == nil
}

// nextLine returns the line that the next owner is taken from.
func (q *Queue[T]) nextLine() *line[T] {
	switch {
	case q.ordinary.first == nil:
		q.overtaken = 0
		return &q.urgent
	case q.urgent.first == nil || q.overtaken == Overtakes:
		q.overtaken = 0
		return &q.ordinary
	default:
		q.overtaken++
		return &q.urgent
	}
}

// Done ends a turn.
func (q *Queue[T]) Done(p *Place[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.phase == again {
		q.enqueue(p)
		return
	}
	p.phase = idle
}

// Close ends the waits of Take.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}

// line is some owners in order. Any of them may leave it at any time, and none costs an
// allocation.
type line[T any] struct{ first, last *Place[T] }

func (l *line[T]) append(p *Place[T]) {
	p.prev, p.next = l.last, nil
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
}

func (l *line[T]) remove(p *Place[T]) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}
