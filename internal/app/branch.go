package app

import (
	"context"
	"iter"
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
	order   mergeOrder
	gate    *catalog.Gate
	outputs []output.Output
	merged  func(catalog.Change) // may be nil
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
		sources: sources, entries: c.Sources, restored: restored, patience: unsaidLimit,
		renewed: func(config.Source) bool { return true }, changed: make(chan struct{}, 1), asked: map[string]question{},
	}
	for _, name := range sources.unknown {
		b.asked[name] = question{}
	}
	required, optional := b.requirements()
	b.gate = catalog.NewGate(required, optional, optionalWait, b.publish)
	b.arrange(c)
	return b
}

// publish is what the gate lets through.
func (b *branch) publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	for _, o := range b.outputs {
		o.Publish(s, change, complete)
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

// arrange has the sources of a configuration merged in its order.
func (b *branch) arrange(c *config.Config) {
	order := c.Order()
	b.order.set(order.Among(b.those(order.Sources)))
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

// merge keeps the catalog until ctx ends, in one order after the other. Each
// reads the store anew, and outputs are given what is different. Merged is
// called with each change.
func (b *branch) merge(ctx context.Context, s records, merged func(catalog.Change)) error {
	merger := catalog.NewMerger(func(s *catalog.Snapshot, change catalog.Change) {
		b.gate.Publish(s, change)
		merged(change)
	})
	for {
		term, order := b.order.term(ctx)
		err := merger.Run(onlyOf(s.Watch(term, model.Filter{}), b.selection()), order)
		if ctx.Err() != nil || term.Err() == nil {
			return err
		}
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
