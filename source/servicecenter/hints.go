package servicecenter

import "sync"

// group is the unit of a watch: the services of an app in an environment.
type group struct{ environment, app string }

func (k Key) group() group { return group{k.Environment, k.App} }

// hints are unhandled events of watches: keys to find, and watches that opened or
// ended. No queue can grow: a key is stored once, and so is a group.
type hints struct {
	signal chan struct{} // holds a token while there are hints

	mu    sync.Mutex // guards the fields below; never held across a send or a call
	keys  map[Key]bool
	opens map[group]bool
	ends  map[group]error
}

func newHints() *hints {
	return &hints{signal: make(chan struct{}, 1), keys: map[Key]bool{}, opens: map[group]bool{}, ends: map[group]error{}}
}

// received notes that a key has changed.
func (h *hints) received(k Key) {
	h.mu.Lock()
	h.keys[k] = true
	h.mu.Unlock()
	h.notify()
}

// opened notes that a watch receives events from now on.
func (h *hints) opened(g group) {
	h.mu.Lock()
	h.opens[g] = true
	h.mu.Unlock()
	h.notify()
}

// ended notes that a watch has ended, and why.
func (h *hints) ended(g group, err error) {
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
func (h *hints) take() (keys map[Key]bool, opens map[group]bool, ends map[group]error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys, opens, ends = h.keys, h.opens, h.ends
	h.keys, h.opens, h.ends = map[Key]bool{}, map[group]bool{}, map[group]error{}
	return keys, opens, ends
}
