package push

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/queue"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// core is the parts of an engine that its subscribers, its dispatcher and its workers share.
type core struct {
	config    Config
	reader    *world.Reader
	index     *index.Index[*interest]
	queue     *queue.Queue[*Subscriber]
	holdings  *holdings
	producers []*Producer // all of them before Run
	table     atomic.Pointer[table]
	wake      chan struct{} // holds a token while a published update waits
	primed    chan struct{} // see Primed

	// step is held while a step's marks are made. A reader of the worlds sees the whole step
	// or nothing of it, and so can keep the order of types.
	step  sync.RWMutex
	steps uint64 // number of steps made; guarded by step

	mu          sync.Mutex
	subscribers map[*Subscriber]struct{}
	stopped     bool
}

// enter adds a subscriber, unless the engine has stopped.
func (e *core) enter(s *Subscriber) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return false
	}
	e.subscribers[s] = struct{}{}
	return true
}

// all yields the subscribers there are now.
func (e *core) all() iter.Seq[*Subscriber] {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*Subscriber, 0, len(e.subscribers))
	for s := range e.subscribers {
		list = append(list, s)
	}
	return func(yield func(*Subscriber) bool) {
		for _, s := range list {
			if !yield(s) {
				return
			}
		}
	}
}

// failAll ends every subscriber: each reconnects and is compared with the whole of the new
// world.
func (e *core) failAll() {
	for s := range e.all() {
		s.fail()
	}
}
