package app

import (
	"sync/atomic"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// lookout wakes the reloader when the departure of a source may be due for a decision.
type lookout struct {
	due     chan struct{} // holds a token when a departure may be due
	judging atomic.Bool   // any change may decide a departure, not only a source's first listing
}

func newLookout() *lookout { return &lookout{due: make(chan struct{}, 1)} }

// look makes the reloader check the sources that leave.
func (l *lookout) look() {
	select {
	case l.due <- struct{}{}:
	default: // a check is already due
	}
}

// merged handles a change in the catalog of all sources.
func (l *lookout) merged(change catalog.Change) {
	if change.Primed || l.judging.Load() {
		l.look()
	}
}
