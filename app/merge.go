package app

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

// mergeAgain is the time between two attempts to merge, after the second panic in a row. An
// attempt reads the whole store.
var mergeAgain = wait.Backoff{Min: time.Second, Max: 30 * time.Second}

// merge keeps the catalog until ctx ends. The store is read once, and again after a panic, or
// when other sources pass.
func (b *branch) merge(ctx context.Context, s Records) error {
	for b.panics = 0; ; {
		term, end := b.term.begin(ctx)
		err := b.merger.Run(onlyOf(s.Watch(term, model.Filter{}), b.selection()))
		renewed := term.Err() != nil
		end()
		panicked, isPanic := errors.AsType[*merger.PanicError](err)
		switch {
		case ctx.Err() != nil:
			return err
		case isPanic:
			b.faults.survived(b.mergePart(), panicked.Value, panicked.Stack)
			if b.panics++; b.panics > 1 {
				wait.Sleep(ctx, mergeAgain.After(b.panics-1, rand.Float64())) //nolint:gosec // only spreads the tries
			}
		case !renewed:
			return err
		}
	}
}

// noteMerged passes on the snapshots of the merger.
func (b *branch) noteMerged(s *catalog.Snapshot, change catalog.Change) {
	if b.panics > 0 {
		b.panics = 0
		b.faults.over(b.mergePart())
	}
	b.gate.Publish(s, change)
	if b.lookout != nil {
		b.lookout.merged(change)
	}
}

// mergePart returns the part of the process that merges for this branch. It is named after
// the outputs, unless the branch takes all sources.
func (b *branch) mergePart() part {
	if b.selection().isAll() {
		return part{where: panicMerge}
	}
	var names []string
	for _, d := range b.outputs {
		names = append(names, d.kind)
	}
	return part{strings.Join(slices.Sorted(slices.Values(names)), ","), panicMerge}
}

// term is the lifetime of one watch of the store.
type term struct {
	mu  sync.Mutex
	end context.CancelFunc // of the current watch; nil before the first
}

// begin returns the context of the next watch.
func (t *term) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, t.end = context.WithCancel(ctx)
	return ctx, t.end
}

// renew ends the watch, so that the store is read anew.
func (t *term) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end()
	}
}
