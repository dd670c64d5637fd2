package app

import (
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
)

// branch is a catalog and the outputs that take it. There is one of all sources,
// and one for each output that takes some sources only: what services are made
// of is another there.
type branch struct {
	merger  *catalog.Merger
	term    term
	panics  int                  // in a row, of the goroutine that merges
	onMerge func(catalog.Change) // of that goroutine, called with each change
	gate    *catalog.Gate
	outputs []*delivery
	faults  *faults
	merged  func(catalog.Change) // may be nil; called with what the gate lets through
	// written is what the outputs write to, and restored are the sources that are stored
	// from the start. Both matter only where sources are of an unknown relation.
	written  output.APIServer
	restored []string
	patience time.Duration // how long a relation has to be unsaid until the source passes
	// renewed reports whether all that is stored of a source was listed with its settings.
	renewed func(s config.Source) bool
	changed chan struct{} // holds a token when sources may have other settings

	mu      sync.Mutex // guards the rest; never held across a wait
	sources selection
	entries []config.Source // of the configuration
	version int             // of the two before
	// asked are the sources of a relation that is not certain, by name: it is unknown, or
	// was unsaid for so long that they pass.
	asked map[string]question
}

// newBranch makes a branch without outputs, which must be there before it is run.
func newBranch(sources selection, c *config.Config, restored []string) *branch {
	b := &branch{
		faults: newFaults(slog.New(slog.DiscardHandler)), sources: sources, entries: c.Sources, restored: restored, patience: unsaidLimit,
		renewed: func(config.Source) bool { return true }, changed: make(chan struct{}, 1), asked: map[string]question{},
	}
	for _, name := range sources.unknown {
		b.asked[name] = question{}
	}
	required, optional := b.requirements()
	b.gate = catalog.NewGate(required, optional, optionalWait, b.publish)
	b.merger = catalog.NewMerger(b.orderOf(c), b.noteMerged)
	return b
}

// publish is what the gate lets through.
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

// orderOf is the order in which the branch merges the sources of a configuration.
func (b *branch) orderOf(c *config.Config) catalog.Order {
	order := c.Order()
	return order.Among(b.those(order.Sources))
}

// those are the sources of a list that are of the branch.
func (b *branch) those(names []string) []string { return b.selection().of(names) }

// requirements are the sources that the gate waits for. One that is stored, and of which
// it is not known whether it is taken at all, holds up the others no longer than an
// optional one: what was written of it stays. So does one that is stored as it was read
// with other settings. The caller has the lock, or the branch alone.
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

// require has the gate wait for the sources of the branch, as they are in the end if they
// change meanwhile.
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
	default: // they will be looked at, and as they are by then
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
