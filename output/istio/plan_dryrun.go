package istio

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Plan lists what the API server has, compares it with what was published last,
// and returns what would be done to each object, ordered by object. It writes
// nothing and stands for no election. It takes the place of [Writer.Run], and
// comes after the first [Writer.Publish].
func (w *Writer) Plan(ctx context.Context) ([]Action, []Omission, error) {
	w.rehearses = true
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { w.view.run(klog.NewContext(ctx, klogTo(w.log))) })
	if err := w.awaitView(ctx); err != nil {
		return nil, nil, err
	}
	if err := w.awaitJudgement(ctx); err != nil {
		return nil, nil, err
	}
	world := w.look()
	var all []Action
	for _, key := range w.keys() {
		t, actions := w.actions(world, key)
		w.keepSelected(ctx, key, actions)
		w.ledger.planned(key, t, actions)
		all = append(all, actions...)
	}
	for i := range all {
		all[i] = w.rehearse(ctx, all[i])
	}
	abandoned, err := w.abandoned(ctx, world, all)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, abandoned...)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	slices.SortStableFunc(all, func(a, b Action) int { return a.compare(b.Ref) })
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
			w.view.awaitRetired(ctx)
			return ctx.Err()
		case <-tick.C:
			if reason, _ := w.view.trouble(); reason != "" {
				return fmt.Errorf("the API server cannot be listed: %s", reason)
			}
		}
	}
}

// rehearse looks at the object itself, of which the view has only the
// fingerprint: it may be in the way of a creation, and what goes is to be shown.
func (w *Writer) rehearse(ctx context.Context, a Action) Action {
	switch a.Verb {
	case Create:
		if u, err := w.remote.get(ctx, a.Ref); err == nil && !includes(u.GetLabels(), a.want.Labels) {
			a.want = w.handedOver(a, u)
			return inTheWayOf(a, u)
		}
		a.Diff = difference(nil, a.want.spec())
	case Update:
		if u, err := w.remote.get(ctx, a.Ref); err == nil {
			a.Diff = difference(specOf(u), a.want.spec())
		}
	case Delete:
		if u, err := w.remote.get(ctx, a.Ref); err == nil {
			a.Diff = difference(specOf(u), nil)
		}
	case Leave:
	}
	return a
}

// difference tells two specifications apart: by the elements of their lists,
// since it does not matter where in a list an endpoint stands.
func difference(have, want map[string]any) []string {
	before, after := lines(have), lines(want)
	count := map[string]int{}
	for _, line := range after {
		count[line]++
	}
	var diff []string
	for _, line := range before {
		if count[line]--; count[line] < 0 {
			diff = append(diff, "- "+line)
		}
	}
	for _, line := range before {
		count[line] = max(count[line], 0)
	}
	for _, line := range after {
		if count[line] > 0 {
			count[line]--
			diff = append(diff, "+ "+line)
		}
	}
	return diff
}

// lines writes each field, and each element of a list, on a line of its own.
func lines(spec map[string]any) []string {
	var out []string
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		list, ok := spec[field].([]any)
		if !ok {
			list = []any{spec[field]}
		}
		for _, item := range list {
			text, err := json.Marshal(item)
			if err != nil {
				continue // it came out of JSON
			}
			out = append(out, field+": "+string(text))
		}
	}
	return out
}
