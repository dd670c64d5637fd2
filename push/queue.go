package push

import "sync"

// queue holds the subscribers that have something to do, each at most once, so
// that it can never grow beyond their number.
type queue struct {
	mu      sync.Mutex
	ready   sync.Cond
	waiting []*Subscriber
	closed  bool
}

// turn is a subscriber's standing with the queue. It is guarded by the queue's lock.
type turn int

const (
	idle    turn = iota
	waiting      // in the queue
	working      // taken by a worker
	again        // taken by a worker, and something came up since
)

func newQueue() *queue {
	q := &queue{}
	q.ready.L = &q.mu
	return q
}

// add asks for a turn. Of a subscriber that is being worked on nobody else may
// take care: it gets its turn when the work is done.
func (q *queue) add(s *Subscriber) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch s.turn {
	case idle:
		q.enqueue(s)
	case working:
		s.turn = again
	case waiting, again:
	}
}

func (q *queue) enqueue(s *Subscriber) {
	s.turn = waiting
	q.waiting = append(q.waiting, s)
	q.ready.Signal()
}

// take waits for a subscriber whose turn it is; ok is false once the queue is
// closed. Whoever takes it calls done.
func (q *queue) take() (s *Subscriber, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return nil, false
	}
	s = q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	s.turn = working
	return s, true
}

func (q *queue) done(s *Subscriber) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.turn == again {
		q.enqueue(s)
		return
	}
	s.turn = idle
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}
