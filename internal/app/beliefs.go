package app

import (
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/istio"
)

// beliefs are the sources that have been listed and are not known to be in the
// catalog as they were: what is listed is stored first and merged then.
type beliefs struct {
	mu    sync.Mutex
	since map[string]uint64 // source → the revision that has its listing
}

func (b *beliefs) await(source string, revision uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since == nil {
		b.since = map[string]uint64{}
	}
	b.since[source] = max(b.since[source], revision) // an earlier listing may still be on its way
}

// reached returns, once, the sources whose listing a revision has.
func (b *beliefs) reached(revision uint64) (sources []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for source, since := range b.since {
		if since <= revision {
			sources = append(sources, source)
			delete(b.since, source)
		}
	}
	return sources
}

// forget drops what is awaited of a source that has left.
func (b *beliefs) forget(source string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.since, source)
}

// listed says that a source has been listed, and as of which revision.
func (o *istioOutput) listed(source string, revision uint64) {
	if o == nil {
		return
	}
	o.beliefs.await(source, revision)
	if o.gate != nil {
		o.merged(o.gate)
	} else {
		o.merged(o.app.gate)
	}
}

// merged says that a catalog has moved on. Only that which is written counts.
func (o *istioOutput) merged(by *catalog.Gate) {
	if o == nil || o.gate != nil && o.gate != by {
		return
	}
	for _, source := range o.beliefs.reached(by.Snapshot().Revision) {
		o.writer.Listed(source)
	}
}

// released says that an operator wants a source to be believed.
func (o *istioOutput) released(source string) {
	if o != nil {
		o.writer.Released(source)
	}
}

// supervisor is that of a source; nil if it has left.
func (o *istioOutput) supervisor(source string) istio.Supervisor {
	if s := o.app.fleet.supervisor(source); s != nil {
		return s
	}
	return nil
}

// gone says that a source is not configured any more.
func (o *istioOutput) gone(source string) {
	if o != nil {
		o.beliefs.forget(source)
		o.writer.Left(source)
	}
}
