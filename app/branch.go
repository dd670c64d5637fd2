package app

import (
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/gate"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
)

// branch is a catalog and the outputs that take it. One branch takes all sources; an output
// that takes only some sources has another, with services merged from other records.
type branch struct {
	merger  *merger.Merger
	term    term
	panics  int      // number of panics in a row; the merging goroutine owns it
	lookout *lookout // sees each change of a branch of all sources; nil for others
	gate    *gate.Gate
	outputs []*delivery
	faults  *faults
	merged  func(catalog.Change) // may be nil; called with each change that passes the gate
	// target is the API server that the output writes to, and restored are the sources stored
	// from the start. Both matter only if the cluster of some source is unknown.
	target   target
	restored []string
	// renewed reports whether all stored records of a source have its current settings.
	renewed func(s config.Source) bool
	changed chan struct{} // holds a token when sources may have other settings

	mu      sync.Mutex // guards the following fields; never held across a wait
	sources selection
	entries []config.Source     // of the configuration
	version int                 // of sources and entries
	asked   map[string]question // the unknown sources, by name
	assumed []string            // why a rehearsal assumes that sources read another cluster
}

// newBranch makes a branch without outputs; they are added before it runs.
func newBranch(sources selection, c *config.Config, restored []string, optionalWait time.Duration) *branch {
	b := &branch{
		faults: newFaults(slog.New(slog.DiscardHandler)), sources: sources, entries: c.Sources, restored: restored,
		renewed: func(config.Source) bool { return true }, changed: make(chan struct{}, 1), asked: map[string]question{},
	}
	for _, name := range sources.unknown {
		b.asked[name] = question{}
	}
	required, optional := b.requirements()
	b.gate = gate.New(required, optional, optionalWait, b.publish)
	b.merger = merger.New(b.orderOf(c), b.noteMerged)
	return b
}

// publish passes a snapshot from the gate to the outputs.
func (b *branch) publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	for _, o := range b.outputs {
		o.publish(s, change, complete, b.faults)
	}
	if b.merged != nil {
		b.merged(change)
	}
}

func (b *branch) selection() selection {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sources
}

// orderOf returns the order in which the branch merges the sources of a configuration.
func (b *branch) orderOf(c *config.Config) catalog.Order {
	order := c.Order()
	return order.Among(b.those(order.Sources))
}

// those returns the sources of a list that belong to the branch.
func (b *branch) those(names []string) []string { return b.selection().of(names) }

// requirements returns the sources that the gate waits for. A stored source that may turn
// out to be left out counts as optional: its written objects stay. So does a source that is
// stored as read with other settings. The caller holds the lock, or owns the branch.
func (b *branch) requirements() (required, optional []string) {
	for _, s := range b.entries {
		switch stored := b.asked[s.Name].replaced || slices.Contains(b.restored, s.Name); {
		case !b.sources.has(s.Name):
		case s.IsRequired() && (b.sources.passes(s.Name) || !stored):
			required = append(required, s.Name)
		default:
			optional = append(optional, s.Name)
		}
	}
	return required, optional
}

// require passes the sources of the branch to the gate. If they change meanwhile, the last
// version wins.
func (b *branch) require() {
	for version, current := 0, false; !current; {
		b.mu.Lock()
		version = b.version
		required, optional := b.requirements()
		b.mu.Unlock()
		b.gate.Require(required, optional)
		b.mu.Lock()
		current = version == b.version
		b.mu.Unlock()
	}
}

// follow takes over the sources of a configuration.
func (b *branch) follow(c *config.Config) {
	b.mu.Lock()
	b.reconsider(c.Sources)
	b.entries = c.Sources
	b.version++
	b.mu.Unlock()
	b.require()
	select {
	case b.changed <- struct{}{}:
	default: // a check is already due, and uses the newest sources
	}
}

// onlyOf leaves the records of other sources out of a watch.
func onlyOf(watch iter.Seq2[model.Batch, error], sources selection) iter.Seq2[model.Batch, error] {
	if sources.isAll() {
		return watch
	}
	other := func(e model.Event) bool {
		switch e := e.(type) {
		case model.Upsert:
			return !sources.passes(e.Record.Source)
		case model.Delete:
			return !sources.passes(e.Record.Source)
		}
		return false
	}
	return func(yield func(model.Batch, error) bool) {
		for batch, err := range watch {
			batch.Events = slices.DeleteFunc(slices.Clone(batch.Events), other)
			if err == nil && len(batch.Events) == 0 {
				continue
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}
