// Package dryrun completes a plan that is shown instead of carried out: it reads the affected
// objects for their differences, and finds objects of an earlier bridge. It writes nothing,
// and one goroutine uses a [Rehearsal].
package dryrun

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
)

// Rehearsal completes the plan of all keys without writing: it reads the affected objects
// themselves.
type Rehearsal struct {
	Remote  *write.Remote
	Planner *plan.Planner
	Facts   *plan.Facts
}

// Complete completes planned actions, and adds the objects of the earlier bridge without a
// service. It returns all actions, ordered by object.
func (r Rehearsal) Complete(ctx context.Context, all []plan.Action) ([]plan.Action, error) {
	for i := range all {
		all[i] = r.complete(ctx, all[i])
	}
	abandoned, err := r.abandoned(ctx, all)
	if err != nil {
		return nil, err
	}
	all = append(all, abandoned...)
	slices.SortStableFunc(all, func(a, b plan.Action) int { return a.Compare(b.Ref) })
	return all, nil
}

// complete reads the object itself, because the view has only its fingerprint. The object
// may block a creation, and removed content is shown.
func (r Rehearsal) complete(ctx context.Context, a plan.Action) plan.Action {
	switch a.Verb {
	case plan.Create:
		if u, err := r.Remote.Get(ctx, a.Ref); err == nil && !object.Includes(u.GetLabels(), a.Want.Labels) {
			a.Want = r.Planner.HandedOver(r.Facts, a, object.Observe(a.Kind, u))
			return inTheWayOf(a, u)
		}
		a.Diff = difference(nil, a.Want.SpecMap())
	case plan.Update:
		if u, err := r.Remote.Get(ctx, a.Ref); err == nil {
			a.Diff = difference(specOf(u), a.Want.SpecMap())
		}
	case plan.Delete:
		if u, err := r.Remote.Get(ctx, a.Ref); err == nil {
			a.Diff = difference(specOf(u), nil)
		}
	case plan.Leave:
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
