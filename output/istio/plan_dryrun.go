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

// Plan lists the API server's objects, compares them with the last published snapshot, and
// returns the action on each object, ordered by object. It writes nothing and takes no part
// in the election. It replaces [Writer.Run], and requires a [Writer.Publish] before.
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

// rehearse reads the object itself, because the view has only its fingerprint. The object
// may block a creation, and removed content is shown.
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

// difference compares two specifications by the elements of their lists, since the position
// of an endpoint in a list does not matter.
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

// lines writes each field, and each element of a list, on its own line.
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
				continue // values decoded from JSON always encode
			}
			out = append(out, field+": "+string(text))
		}
	}
	return out
}
