package source

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Leftover names the sources that have records and are not configured: the sources to
// [Remove].
func Leftover(stored Lister, configured []string) []string {
	names := map[string]bool{}
	for r := range stored.List(model.Filter{}) {
		names[r.Source] = true
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		return slices.Contains(configured, name)
	})
	return slices.Sorted(maps.Keys(names))
}

// Remove deletes everything a source has stored, its mark included, in one commit.
// The caller makes sure that the source is not configured, its supervisor has
// returned, and its successors have been listed.
func Remove(ctx context.Context, store Store, source string) (err error) {
	for range commitTries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var d difference
		for rec := range store.List(model.Filter{Source: source}) {
			d.remove(rec, true)
		}
		if len(d.Deletes) == 0 {
			return nil
		}
		if _, err = store.Commit(ctx, model.Commit{Writes: d.Deletes}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove source %s: %w", source, err)
}
