package app

import (
	"context"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
)

// branch is a catalog and the outputs that take it. There is one of all sources,
// and one for each output that takes some sources only: what services are made
// of is another there.
type branch struct {
	sources selection
	order   mergeOrder
	gate    *catalog.Gate
	outputs []output.Output
	merged  func(catalog.Change) // may be nil
}

// newBranch makes a branch without outputs, which must be there before it is run.
func newBranch(sources selection, c *config.Config) *branch {
	b := &branch{sources: sources}
	required, optional := b.requirements(c)
	b.gate = catalog.NewGate(required, optional, optionalWait, b.publish)
	b.order.set(b.those(names(c)))
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

// those are the sources of a list that are of the branch.
func (b *branch) those(names []string) []string { return b.sources.of(names) }

func (b *branch) requirements(c *config.Config) (required, optional []string) {
	required, optional = requirements(c)
	return b.those(required), b.those(optional)
}

// merge keeps the catalog until ctx ends, in one order after the other. Each
// reads the store anew, and outputs are given what is different. Primed is
// called when another source has been listed.
func (b *branch) merge(ctx context.Context, s records, primed func()) error {
	merger := catalog.NewMerger(func(s *catalog.Snapshot, change catalog.Change) {
		b.gate.Publish(s, change)
		if change.Primed {
			primed()
		}
	})
	for {
		term, order := b.order.term(ctx)
		err := merger.Run(onlyOf(s.Watch(term, model.Filter{}), b.sources), order)
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
			return !sources.has(e.Record.Source)
		case model.Delete:
			return !sources.has(e.Record.Source)
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
