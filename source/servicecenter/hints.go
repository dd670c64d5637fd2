package servicecenter

import "sync"

// group is what one consumer can watch: the services of an app in
// an environment.
type group struct{ environment, app string }

func (k Key) group() group { return group{k.Environment, k.App} }

// hints is what watches have received and nobody has looked at yet: which keys are
// to be found, and how the watches fare. It has no queue that could grow: a key
// is in it once, and so is a group.
type hints struct {
	signal chan struct{} // holds a token while there is something

	mu    sync.Mutex // guards what follows; never held across a send or a call
	keys  map[Key]bool
	opens map[group]bool
	ends  map[group]error
}

func newHints() *hints {
	return &hints{signal: make(chan struct{}, 1), keys: map[Key]bool{}, opens: map[group]bool{}, ends: map[group]error{}}
}

// received notes that something of a key has changed.
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

// ended notes that a watch receives nothing any more, and why.
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

// take hands over everything there is.
func (h *hints) take() (keys map[Key]bool, opens map[group]bool, ends map[group]error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys, opens, ends = h.keys, h.opens, h.ends
	h.keys, h.opens, h.ends = map[Key]bool{}, map[group]bool{}, map[group]error{}
	return keys, opens, ends
}
