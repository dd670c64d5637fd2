package istio

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Plan lists what the API server has, compares it with what was published last,
// and returns what would be done to each object, ordered by object. It writes
// nothing and stands for no election. It takes the place of [Writer.Run], and
// comes after the first [Writer.Publish].
func (w *Writer) Plan(ctx context.Context) ([]Action, []Omission, error) {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { w.view.run(ctx) })
	if err := w.awaitView(ctx); err != nil {
		return nil, nil, err
	}
	world := w.newest.Load()
	var all []Action
	for _, key := range w.keys() {
		t, actions := w.actions(world, key)
		w.ledger.translated(key, t)
		all = append(all, actions...)
	}
	for i := range all {
		if all[i].Verb == Create {
			all[i] = w.rehearse(ctx, all[i])
		}
	}
	slices.SortStableFunc(all, func(a, b Action) int { return a.Ref.compare(b.Ref) })
	return all, w.ledger.omissions(), nil
}

// awaitView waits until the API server has been listed, or cannot be.
func (w *Writer) awaitView(ctx context.Context) error {
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		w.waitPrimed(ctx)
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-listed:
			return ctx.Err()
		case <-tick.C:
			if reason, _ := w.view.trouble(); reason != "" {
				return fmt.Errorf("the API server cannot be listed: %s", reason)
			}
		}
	}
}

// rehearse looks whether an object that is to be created is in the way.
func (w *Writer) rehearse(ctx context.Context, a Action) Action {
	if u, err := w.remote.get(ctx, a.Ref); err == nil && !includes(u.GetLabels(), a.want.Labels) {
		a.Verb, a.Reason = Leave, (&clash{a.Ref, u.GetLabels()}).Error()
	}
	return a
}
