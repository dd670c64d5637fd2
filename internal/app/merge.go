package app

import (
	"context"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// ranking is the order that sources are merged in.
type ranking struct {
	mu    sync.Mutex
	order []string
	end   context.CancelFunc // of the order's reign; nil before the first
}

// set puts another order in force, unless sources are in that order already.
// Those that are gone are no reason for another: their places stay empty.
func (r *ranking) set(order []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if within(order, r.order) {
		return
	}
	r.order = slices.Clone(order)
	if r.end != nil {
		r.end()
	}
}

// reign returns the order in force, and a context that ends with it.
func (r *ranking) reign(ctx context.Context) (context.Context, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reign, end := context.WithCancel(ctx)
	r.end = end
	return reign, r.order
}

// merge keeps the catalog until ctx ends, in one order after the other. Each
// reads the store anew, and readers are told what is different.
func (a *App) merge(ctx context.Context) error {
	merger := catalog.NewMerger(func(s *catalog.Snapshot, change catalog.Change) {
		a.gate.Publish(s, change)
		if change.Primed {
			select {
			case a.primed <- struct{}{}:
			default: // somebody is told already
			}
		}
	})
	for {
		reign, order := a.ranking.reign(ctx)
		err := merger.Run(a.store.Watch(reign, model.Filter{}), order)
		if ctx.Err() != nil || reign.Err() == nil {
			return err
		}
	}
}
