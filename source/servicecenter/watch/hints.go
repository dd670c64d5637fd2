package watch

import (
	"sync"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// hints are unhandled events of watches: keys to find, and watches that opened or
// ended. No queue can grow: a key is stored once, and so is a group.
type hints struct {
	signal chan struct{} // holds a token while there are hints

	mu    sync.Mutex // guards the fields below; never held across a send or a call
	keys  map[registry.Key]bool
	opens map[registry.Group]bool
	ends  map[registry.Group]error
}

func newHints() *hints {
	return &hints{signal: make(chan struct{}, 1), keys: map[registry.Key]bool{}, opens: map[registry.Group]bool{}, ends: map[registry.Group]error{}}
}

// received notes that a key has changed.
func (h *hints) received(k registry.Key) {
	h.mu.Lock()
	h.keys[k] = true
	h.mu.Unlock()
	h.notify()
}

// opened notes that a watch receives events from now on.
func (h *hints) opened(g registry.Group) {
	h.mu.Lock()
	h.opens[g] = true
	h.mu.Unlock()
	h.notify()
}

// ended notes that a watch has ended, and why.
func (h *hints) ended(g registry.Group, err error) {
	h.mu.Lock()
	h.ends[g] = err
	h.mu.Unlock()
	h.notify()
}

func (h *hints) notify() {
	select {
	case h.signal <- struct{}{}:
	default: // the reader is notified already
	}
}

// take returns all hints and clears them.
func (h *hints) take() (keys map[registry.Key]bool, opens map[registry.Group]bool, ends map[registry.Group]error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys, opens, ends = h.keys, h.opens, h.ends
	h.keys, h.opens, h.ends = map[registry.Key]bool{}, map[registry.Group]bool{}, map[registry.Group]error{}
	return keys, opens, ends
}
